"""What llama-server makes of generated text: thinking, content and tool calls, for whole and for cut replies.

The rules are those seen on llama.cpp of autumn 2026 with this double's template. Thinking keeps its last newline; content
keeps the newline before a call. A cut call is part of the message as soon as its name is complete, with the arguments as far
as they got (`{` when they had not begun); before that its beginning is dropped. Where nothing at all could be made out, the
raw text is the content. Without tools in the request, calls stay text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CALL = re.compile(r'\s*<tool_call>\s*\{\s*"name"\s*:\s*"([^"]*)"(?:\s*,\s*"arguments"\s*:\s*)?')
_CALL_END = re.compile(r"\}\s*</tool_call>")
_OPEN, _THINK, _THOUGHT = "<tool_call>", "<think>\n", "</think>"


@dataclass(frozen=True)
class Parsed:
    """calls: (name, the raw text of the arguments)."""

    content: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str], ...] = ()


def parse(text: str, *, tools: bool, ended: bool = True) -> Parsed:
    """The parts of a generated text (without its end token).

    tools: whether the request offered any. ended: False for a reply that was cut, whose last tag may have only begun.
    """
    thinking, rest = _thinking(text, ended)
    if not tools:
        return _or_raw(text, Parsed(rest, thinking))
    content, opened, _ = rest.partition(_OPEN)
    if not opened:
        return _or_raw(text, Parsed(rest if ended else _without_beginning(rest, _OPEN), thinking))
    return _or_raw(text, Parsed(content, thinking, tuple(_calls(rest[len(content) :]))))


def _thinking(text: str, ended: bool) -> tuple[str, str]:
    if not text.startswith(_THINK):
        return "", text if ended or not _THINK.startswith(text) else ""
    thinking, closed, rest = text.removeprefix(_THINK).partition(_THOUGHT)
    if not closed:
        return (thinking if ended else _without_beginning(thinking, _THOUGHT)).lstrip(), ""
    return thinking.lstrip(), rest.lstrip("\n")


def _calls(text: str) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    position = 0
    while found := _CALL.match(text, position):
        end = _CALL_END.search(text, found.end())
        if end is None:
            calls.append((found[1], _cut_arguments(text[found.end() :])))
            break
        calls.append((found[1], text[found.end() : end.start()]))
        position = end.end()
    return calls


def _cut_arguments(text: str) -> str:
    """The arguments of a call that was cut; the braces that close the call itself are no part of them."""
    if not text.startswith(("{", "[", '"')):
        return "{"
    closed = _without_beginning(text, "}\n" + "</tool_call>")
    return closed.rstrip() if closed.rstrip() != text.rstrip() and _balanced(closed) else text.rstrip()


def _balanced(text: str) -> bool:
    depth, quoted, escaped = 0, False, False
    for char in text:
        if quoted:
            quoted, escaped = (escaped or char != '"'), (char == "\\" and not escaped)
        elif char == '"':
            quoted = True
        else:
            depth += (char in "{[") - (char in "}]")
    return depth == 0 and not quoted


def _without_beginning(text: str, marker: str) -> str:
    """The text without a last part that may be the beginning of the marker."""
    for size in range(min(len(marker) - 1, len(text)), 0, -1):
        if text.endswith(marker[:size]):
            return text[:-size]
    return text


def _or_raw(text: str, parsed: Parsed) -> Parsed:
    return parsed if parsed != Parsed() else Parsed(content=text)
