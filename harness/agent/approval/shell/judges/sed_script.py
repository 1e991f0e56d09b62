"""A sed script, read command by command: editing the stream is fine, files and programs are not."""

import re

from harness.agent.approval.shell.asks import AsksError

_ADDRESS = re.compile(r"(?:\d+|\$|\+\d+|~\d+)")
_PLAIN = set("=dDgGhHnNpPxzlF")
_FLAGS = re.compile(r"[gpiImM0-9]*")


def check(script: str) -> None:
    """Ask unless every command of the script only works on the stream. Follows GNU sed's grammar."""
    position = 0
    while position < len(script):
        position = _command(script, position)


def _command(script: str, at: int) -> int:
    at = _skip(script, at, " \t\n;{}")
    if at >= len(script):
        return at
    at = _skip(script, _addresses(script, at), " \t!")
    if at >= len(script):
        return at
    letter = script[at]
    if letter == "{":
        return at + 1
    if letter == "#":
        return _line_end(script, at)
    if letter in _PLAIN:
        return _end(script, at + 1)
    if letter in "qQL":
        return _end(script, _skip(script, at + 1, " 0123456789"))
    if letter in "btT:":
        matched = re.compile(r"[ \t]*[A-Za-z0-9_]*").match(script, at + 1)
        assert matched
        return _end(script, matched.end())
    if letter in "aic":
        return _text(script, at + 1)
    if letter in "sy":
        return _substitute(script, at, letter)
    raise AsksError(f"sed command {letter!r} is not in the table")


def _addresses(script: str, at: int) -> int:
    at = _address(script, at)
    after = _skip(script, at, " \t")
    if script[after : after + 1] == ",":
        at = _address(script, _skip(script, after + 1, " \t"))
    return at


def _address(script: str, at: int) -> int:
    if script[at : at + 1] == "/":
        end = _delimited(script, at + 1, "/")
    elif script[at : at + 1] == "\\" and len(script) > at + 1:
        end = _delimited(script, at + 2, script[at + 1])
    else:
        while matched := _ADDRESS.match(script, at):
            at = matched.end()
        return at
    return _skip(script, end, "IM")


def _delimited(script: str, at: int, mark: str) -> int:
    """The position after the next unescaped `mark`, which ends an expression."""
    if mark in "\n\\":
        raise AsksError("an unusual sed delimiter")
    start = at
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == mark:
            _check_brackets(script[start:at])
            return at + 1
        else:
            at += 1
    raise AsksError("an unfinished sed expression")


def _check_brackets(expression: str) -> None:
    """Ask where a bracket is open at the end: whether a delimiter in brackets ends the expression differs between seds."""
    at = 0
    while at < len(expression):
        if expression[at] == "\\":
            at += 2
        elif expression[at] == "[":
            start = _skip(expression, at + 1, "^")
            at = expression.find("]", start + 1) + 1
            if at == 0:
                raise AsksError("a sed bracket with the delimiter in it")
        else:
            at += 1


def _substitute(script: str, at: int, letter: str) -> int:
    mark = script[at + 1 : at + 2]
    if not mark or mark.isalnum() or mark in " \t":
        raise AsksError("an unusual sed delimiter")
    middle = _delimited(script, at + 2, mark)
    end = middle
    while script[end : end + 1] != mark:
        if end >= len(script):
            raise AsksError("an unfinished sed expression")
        end += 2 if script[end] == "\\" else 1
    end += 1
    flags = _FLAGS.match(script, end) if letter == "s" else None
    return _end(script, flags.end() if flags else end)


def _text(script: str, at: int) -> int:
    """Text of a, i, c: to the end of the line, a backslash carries on."""
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == "\n":
            return at + 1
        else:
            at += 1
    return at


def _end(script: str, at: int) -> int:
    """What may follow a command; anything else is a command or flag this reader does not know."""
    at = _skip(script, at, " \t")
    if at >= len(script) or script[at] in ";\n}#":
        return at
    raise AsksError(f"sed {script[at]!r} after a command is not in the table")


def _line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end


def _skip(script: str, at: int, characters: str) -> int:
    while at < len(script) and script[at] in characters:
        at += 1
    return at
