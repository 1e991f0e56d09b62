"""Options and operands of one command, cut the way getopt cuts them, every value checked by the table.

Contract: an option that is not in the table asks, an abbreviation of a listed one included; so does a word of unknown text
where an option could stand.
"""

import re
from dataclasses import dataclass

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.table import Options
from harness.agent.approval.shell.values import Word, known

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?[bcwlkKMGTs]?B?")


@dataclass(frozen=True)
class Arguments:
    """What was given: option names in order with their value (None for a flag), and the operands."""

    options: tuple[tuple[str, Word | None], ...]
    operands: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        """True where one of the options was given."""
        return any(name in names for name, _ in self.options)

    def value(self, name: str) -> Word | None:
        """The last value given for an option."""
        return next((value for option, value in reversed(self.options) if option == name), None)


def read_arguments(call: Call, options: Options, *, stop_at_operand: bool = False) -> Arguments:
    """Cut and check `call.args`. With `stop_at_operand` everything from the first operand on is an operand."""
    given: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    waiting = list(call.args)
    while waiting:
        word = waiting.pop(0)
        if not _looks_like_option(word, options):
            operands.append(word)
            if stop_at_operand:
                operands += waiting
                break
            continue
        text = word.prefix
        if text == "--" and word.text is not None:
            operands += waiting
            break
        if text.startswith("--"):
            given.append(_long(call, word, options, waiting))
        elif word.text is not None and len(text) > 1 and text[0] in options.digits and text[1:].isdigit():
            given.append((text[0], word))
        else:
            given += _cluster(call, word, options, waiting)
    return Arguments(tuple(given), tuple(operands))


def check_value(call: Call, check: str | re.Pattern[str], value: Word, option: str) -> None:
    """Ask unless `value` passes `check`."""
    if check == "read":
        call.read(value)
    elif check == "number":
        if not value.number and not _NUMBER.fullmatch(value.text or ""):
            raise AsksError(f"{call.name}: {option} wants a number")
    elif isinstance(check, re.Pattern) and (value.text is None or not check.fullmatch(value.text)):
        raise AsksError(f"{call.name}: {option} with this value is not in the table")


def _looks_like_option(word: Word, options: Options) -> bool:
    if word.text is None:
        if not word.may_be_option:
            return False
        if not word.prefix:
            raise AsksError("a word that may be an option")
        return True
    plus = "+" in options.digits and word.text[:1] == "+" and word.text[1:].isdigit()
    return plus or word.may_be_option


def _long(call: Call, word: Word, options: Options, waiting: list[Word]) -> tuple[str, Word | None]:
    name, equals, start = word.prefix[2:].partition("=")
    if word.text is None and not equals:
        raise AsksError("a word that may be an option")
    shown = f"--{name}"
    if len(name) < 2:
        raise AsksError(f"{call.name}: {shown} is not in the table")
    if name in options.optional:
        return name, _glued(word, start) if equals else None
    if name in options.takes:
        value = _glued(word, start) if equals else _next(call, shown, waiting)
        check_value(call, options.takes[name], value, shown)
        return name, value
    if name in options.pairs and not equals:
        _next(call, shown, waiting)
        return name, _next(call, shown, waiting)
    if name in options.flags and not equals:
        return name, None
    raise AsksError(f"{call.name}: {shown} is not in the table")


def _cluster(call: Call, word: Word, options: Options, waiting: list[Word]) -> list[tuple[str, Word | None]]:
    given: list[tuple[str, Word | None]] = []
    letters = word.prefix[1:]
    for index, letter in enumerate(letters):
        rest, shown = letters[index + 1 :], f"-{letter}"
        if letter in options.takes:
            glued = rest or word.text is None
            value = _glued(word, rest) if glued else _next(call, shown, waiting)
            check_value(call, options.takes[letter], value, shown)
            return [*given, (letter, value)]
        if letter in options.optional:
            return [*given, (letter, _glued(word, rest))]
        if letter not in options.flags:
            raise AsksError(f"{call.name}: {shown} is not in the table")
        given.append((letter, None))
    if word.text is None:
        raise AsksError("a word that may be an option")
    return given


def _glued(word: Word, rest: str) -> Word:
    """The value that starts with `rest` inside the option word `word`."""
    return Word(None, rest) if word.text is None else known(rest)


def _next(call: Call, shown: str, waiting: list[Word]) -> Word:
    if not waiting:
        raise AsksError(f"{call.name}: {shown} wants a value")
    return waiting.pop(0)
