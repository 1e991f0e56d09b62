"""find: tests only look; actions that write, delete or run are opened or ask."""

import re
from fnmatch import fnmatchcase

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.rows import names_below
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import UNKNOWN, Value, Word

_OPERATORS = {"(", ")", "!", "-not", "-a", "-and", "-o", "-or", ","}
_ALONE = {"-print", "-print0", "-ls", "-prune", "-quit", "-empty", "-true", "-false", "-depth", "-mount", "-xdev",
          "-readable", "-writable", "-executable", "-nouser", "-nogroup", "-daystart", "-noleaf"}  # fmt: skip
_TEXT = {"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-type",
         "-maxdepth", "-mindepth", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-size", "-perm", "-user",
         "-group", "-uid", "-gid", "-links", "-inum", "-printf", "-lname", "-ilname", "-newermt"}  # fmt: skip
_READ = {"-newer", "-anewer", "-cnewer", "-samefile"}
_RUNS = {"-exec"}
_ACTS = {"-exec", "-print", "-print0", "-ls", "-printf", "-quit"}
_START = re.compile(r"[-(),!]")


def find(call: Call, row: Command) -> Outcome:
    """Read starts and expression; a command behind -exec is judged with the names find would hand it."""
    words = list(call.args)
    while words and words[0].text == "-P":
        words.pop(0)
    starts: list[Word] = []
    while words and words[0].text is not None and not _START.match(words[0].text):
        starts.append(words.pop(0))
    for start in starts:
        call.read(start)
    expression: list[tuple[str, str | None]] = []
    commands: list[tuple[list[Word], bool]] = []
    while words:
        word = words.pop(0)
        text = word.text
        if text is None:
            raise AsksError("a find expression that is not known")
        if text in _OPERATORS or text in _ALONE:
            expression.append((text, None))
        elif text in _TEXT or text in _READ:
            value = _value(text, words)
            if text in _READ:
                call.read(value)
            expression.append((text, value.text))
        elif text in _RUNS:
            commands.append(_command(text, words))
            expression.append((text, None))
        else:
            raise AsksError(f"find {text} is not in the table")
    names = _names(call, tuple(starts), expression)
    for command, many in commands:
        call.shell.run_words([_filled(word, names, many) for word in command], call.state, kept=call.kept)
    prints = not commands and not any(text in ("-printf", "-ls") for text, _ in expression)
    return Outcome.unchanged(call.state, names if prints else UNKNOWN)


def _value(text: str, words: list[Word]) -> Word:
    if not words:
        raise AsksError(f"find {text} wants a value")
    return words.pop(0)


def _command(text: str, words: list[Word]) -> tuple[list[Word], bool]:
    """The command behind an action, and whether it gets many names at once."""
    command: list[Word] = []
    while words:
        word = words.pop(0)
        if word.text == ";" or (word.text == "+" and command and command[-1].text == "{}"):
            return command, word.text == "+"
        command.append(word)
    raise AsksError(f"find {text} without an end")


def _filled(word: Word, names: Value, many: bool) -> Word:
    if word.text is None or "{}" not in word.text:
        return word
    if word.text == "{}":
        return Word(None, "", names.names_from, many=many)
    return Word(None, word.text.split("{}")[0])


def _names(call: Call, starts: tuple[Word, ...], expression: list[tuple[str, str | None]]) -> Value:
    """Which names can be found: a filter counts only before the first action and where
    nothing in the expression can undo it.
    """
    tokens = [text for text, _ in expression]
    acts = next((index for index, text in enumerate(tokens) if text in _ACTS), len(tokens))
    conjunction = not any(text in ("-o", "-or", ",", "(", ")") for text in tokens)
    patterns, links = [], True
    for before, (text, value) in zip(["", *tokens], expression[:acts], strict=False):
        if not conjunction or before in ("!", "-not"):
            continue
        if text == "-name" and value is not None and not re.search(r"[\\\[]", value):
            patterns.append(value)
        if text == "-type" and value in ("f", "d"):
            links = False
    return names_below(call, starts, lambda name: all(fnmatchcase(name, p) for p in patterns), links=links)
