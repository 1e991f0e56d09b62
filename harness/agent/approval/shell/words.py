"""From a word's source to what the program gets: quotes, escapes, braces, tilde, expansions.

Contract: the scanner reads the source characters itself and uses the syntax tree only to know where a substitution ends,
so a word the grammar cut wrongly is noticed (AsksError) and not believed. A word is known (`text`), stands for names
inside the copy (`names_from`), or is unknown. One `Dialect` is read at a time: dash leaves $'..' and braces as they are.
"""

import re
from collections.abc import Iterator
from typing import Protocol

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.braces import MAX_WORDS, Item, braces
from harness.agent.approval.shell.nodes import Node
from harness.agent.approval.shell.values import NUMBER, UNKNOWN, Dialect, Value, Word, known

_SUBSTITUTIONS = {
    "simple_expansion",
    "expansion",
    "command_substitution",
    "process_substitution",
    "arithmetic_expansion",
}
_WORD_NODES = _SUBSTITUTIONS | {
    "word", "concatenation", "string", "raw_string", "ansi_c_string", "number", "brace_expression", "$", "command_name",
    "test_operator", "regex", "extglob_pattern", "=", "!",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANSI_ESCAPES = re.compile(r"\\(?:[abefnrtv\\\"?]|x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8})")
_GLOB = "*?["


class Expander(Protocol):
    """What a word needs of the script around it."""

    dialect: Dialect

    def variable(self, name: str) -> Value: ...

    def nested(self, node: Node) -> Value: ...

    def glob(self, pattern: str) -> list[str]: ...


def words_of(nodes: list[Node], source: bytes, expander: Expander) -> list[Word]:
    """Expand the word made of adjacent `nodes` into the words the program gets."""
    items = list(_scan(nodes, source, expander, *_span(nodes)))
    if not items:
        return []
    _refuse_home(items)
    alternatives = list(braces(items)) if expander.dialect == "bash" else [items]
    if len(alternatives) > MAX_WORDS:
        raise AsksError("too many words from braces")
    return [word for one in alternatives for word in _finish(one, expander)]


def single(nodes: list[Node], source: bytes, expander: Expander) -> Value:
    """The value of a word that is neither split nor matched against names (an assignment, a here-string)."""
    if not nodes:
        return Value(text="")
    items = list(_scan(nodes, source, expander, *_span(nodes)))
    _refuse_home(items)
    return _join(items)


def _refuse_home(items: list[Item]) -> None:
    # After = and : too: bash expands it there in any word that looks like an assignment.
    for before, item in zip([None, *items], items, strict=False):
        if item.char == "~" and not item.quoted and (before is None or (before.char and before.char in ":=")):
            raise AsksError("a home folder (~)")


def heredoc_value(nodes: list[Node], source: bytes, expander: Expander, start: int, end: int) -> Value:
    """The value of an unquoted heredoc's body, the bytes from `start` to `end`."""
    return _join(list(_scan(nodes, source, expander, start, end, here=True)))


def _span(nodes: list[Node]) -> tuple[int, int]:
    return nodes[0].start_byte, nodes[-1].end_byte


def _scan(
    nodes: list[Node], source: bytes, expander: Expander, start: int, end: int, *, here: bool = False
) -> Iterator[Item]:
    """Characters and expansions between two offsets; `here`: inside a heredoc, where quotes are plain text."""
    inner: dict[int, Node] = {}
    for node in nodes:
        _collect(node, inner)
    # One byte is one character here, so the tree's offsets fit; runs are decoded again in _text.
    text, index = source[start:end].decode("latin-1"), 0
    quote, empty_quotes = here, False
    while index < len(text):
        char, two = text[index], text[index : index + 2]
        node = inner.pop(start + index, None)
        if node is not None:
            yield Item("", quote, _substitute(node, source, expander))
            index += node.end_byte - node.start_byte
        elif char == "\\":
            if len(two) < 2:
                raise AsksError("a trailing backslash")
            if quote and two[1] not in ("$`\\" if here else '$`"\\'):
                yield Item("\\", True)
            yield Item(two[1], True)
            index += 2
        elif char == '"' and not here:
            quote = not quote
            empty_quotes = True
            index += 1
        elif not quote and char == "'":
            close = text.find("'", index + 1)
            if close < 0:
                raise AsksError("an unclosed quote")
            empty_quotes = True
            yield from (Item(c, True) for c in text[index + 1 : close])
            index = close + 1
        elif not quote and two == "$'":
            close = text.find("'", index + 2)
            body = text[index + 2 : close]
            if close < 0 or body.endswith("\\"):
                raise AsksError("a quote two shells read differently")
            raw = "$" + body if expander.dialect == "dash" else _ansi(body)
            empty_quotes = True
            yield from (Item(c, True) for c in raw)
            index = close + 1
        elif not quote and two == '$"':
            if expander.dialect == "dash":
                yield Item("$", True)
            index += 1
        elif char == "`" or two in ("$(", "${", "$[") or (not quote and two in ("<(", ">(")):
            raise AsksError("an unclear substitution")
        elif char == "$" and len(two) == 2 and (two[1].isalnum() or two[1] in "_@*#?$!-"):
            raise AsksError("an unclear expansion")
        elif not quote and (char in " \t\n;&|<>()" or (char == "#" and index == 0)):
            raise AsksError("an unclear word")
        else:
            yield Item(char, quote)
            index += 1
    if quote != here or inner:
        raise AsksError("an unclear word")
    if empty_quotes:
        # Keeps '' a word of its own where nothing else stands in it.
        yield Item("", True)


def _collect(node: Node, found: dict[int, Node]) -> None:
    if node.type in _SUBSTITUTIONS:
        found[node.start_byte] = node
        return
    if node.type == "raw_string" or node.type == "ansi_c_string":
        return
    if node.type not in _WORD_NODES and node.type not in (
        '"',
        "string_content",
        "{",
        "}",
        "..",
        "heredoc_body",
        "heredoc_content",
    ):
        raise AsksError(f"an unusual word ({node.type})")
    for child in node.children:
        _collect(child, found)


def _substitute(node: Node, source: bytes, expander: Expander) -> Value:
    text = source[node.start_byte : node.end_byte].decode("utf-8")
    if node.type == "simple_expansion":
        name = text[1:]
        if name in ("?", "#", "$"):
            return NUMBER
        if not _NAME.fullmatch(name):
            raise AsksError(f"{text}, which the command does not set")
        return expander.variable(name)
    if node.type == "expansion":
        return _parameter(text, expander)
    return expander.nested(node)


_PARAMETER = re.compile(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*)(?:(%%?|##?)([A-Za-z0-9_./*-]*))?\}")


def _parameter(text: str, expander: Expander) -> Value:
    matched = _PARAMETER.fullmatch(text)
    if not matched or (matched[1] and matched[3]):
        raise AsksError(f"{text} is not looked into")
    value = expander.variable(matched[2])
    if matched[1]:
        return NUMBER
    if not matched[3]:
        return value
    operator, pattern = matched[3], matched[4]
    if value.text is None:
        return UNKNOWN
    if operator == "##" and pattern == "*/":
        return Value(text=value.text.rsplit("/", 1)[-1])
    if "*" in pattern:
        return UNKNOWN
    cut = value.text.removesuffix(pattern) if operator[0] == "%" else value.text.removeprefix(pattern)
    return Value(text=cut)


_PLAIN_ESCAPES = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def _ansi(body: str) -> str:
    """The text of $'body'; escapes that only one reading of the manual settles ask."""
    if "\\" in _ANSI_ESCAPES.sub("", body):
        raise AsksError("an unusual escape")
    decoded = _ANSI_ESCAPES.sub(_unescape, body)
    if not decoded.isascii() or "\0" in decoded:
        raise AsksError("an unusual escape")
    return decoded


def _unescape(matched: re.Match[str]) -> str:
    kind = matched[0][1]
    if kind in _PLAIN_ESCAPES:
        return chr(_PLAIN_ESCAPES[kind])
    if kind in "xuU":
        return chr(min(int(matched[0][2:], 16), 0x10FFFF))
    if kind.isdigit():
        return chr(int(matched[0][1:], 8) % 256)
    return kind


def _text(chars: str) -> str:
    try:
        return chars.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise AsksError("a broken character") from None


def _join(items: list[Item]) -> Value:
    """The value of `items` taken as they are."""
    full = [item for item in items if item.char or item.value]
    if len(full) == 1 and full[0].value is not None:
        return full[0].value
    out = ""
    for run in _runs(items):
        if isinstance(run, Value):
            if run.text is None:
                return UNKNOWN
            out += run.text
        else:
            out += _text(run)
    return Value(text=out)


def _runs(items: list[Item]) -> Iterator[Value | str]:
    run = ""
    for item in items:
        if item.value is None:
            run += item.char
            continue
        yield run
        run = ""
        yield item.value
    yield run


def _finish(items: list[Item], expander: Expander) -> list[Word]:
    """Splitting, matching names, and the words that come of it."""
    items = [item for item in items if item.char or item.value or item.quoted]
    if not items:
        # An alternative of nothing, as in {a,}, is no word.
        return []
    bare = [item for item in items if item.value is not None and not item.quoted]
    for item in bare:
        assert item.value is not None
        listed = item.value.names_from is not None and len(items) == 1
        if item.value.text is None and not item.value.number and not listed:
            raise AsksError("an unquoted value that is not known")
        if item.value.text is not None and set(item.value.text) & set("*?[\\"):
            raise AsksError("an unquoted value with a pattern")
        if item.value.text is not None and len(item.value.text.split()) != 1:
            if len(items) > 1:
                raise AsksError("an unquoted value with blanks")
            return [known(part) for part in item.value.text.split()]
    if any(not item.quoted and item.char in _GLOB and item.char for item in items):
        return _match(items, expander)
    value = _join(items)
    if value.text is not None:
        return [known(value.text)]
    prefix = next(iter(_runs(items)))
    many = bool(bare) and len(items) == 1
    return [Word(None, _text(prefix) if isinstance(prefix, str) else "", value.names_from, value.number, many)]


def _match(items: list[Item], expander: Expander) -> list[Word]:
    pattern, plain, active = "", "", False
    for index, item in enumerate(items):
        if item.value is not None:
            if item.value.text is None:
                raise AsksError("a pattern with an unknown part")
            pattern += re.sub(r"([*?\[])", r"[\1]", item.value.text)
            plain += item.value.text
            continue
        closes = any(later.char == "]" and not later.quoted for later in items[index + 1 :])
        if not item.quoted and (item.char in ("*", "?") or (item.char == "[" and closes)):
            active = True
            pattern += item.char
        else:
            pattern += f"[{item.char}]" if item.char and item.char in _GLOB else item.char
        plain += item.char
    if not active:
        return [known(_text(plain))]
    matches = expander.glob(_text(pattern))
    if len(matches) > MAX_WORDS * 10:
        raise AsksError("a pattern that matches too many names")
    return [known(name) for name in matches] or [known(_text(plain))]
