"""From a command's text to a checked syntax tree.

Contract: `parse` returns a tree only where the text holds nothing two shells could read differently at this level: no
control characters, no unquoted non-ASCII, no line continuation in a place where joining lines is not plain, no token the
grammar skipped, no heredoc whose end is in doubt. Everything else raises AsksError. The grammar is tree-sitter-bash.
"""

import re
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Parser

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.nodes import Node, copied

MAX_CHARACTERS = 20_000
MAX_DEPTH = 100
_LANGUAGE = Language(tree_sitter_bash.language())
# Their inside is read by words.py or is plain text; blanks in them are content.
_OPAQUE = {"string", "raw_string", "ansi_c_string", "heredoc_body", "comment", "expansion", "arithmetic_expansion"}
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'(\w+)'|\"(\w+)\"|(\w+))(?=[\s;|&)<>]|$)", re.ASCII)


def parse(command: str) -> tuple[Node, bytes]:
    """Return the root node of `command` and the bytes its offsets count in, or raise AsksError with what is in the way."""
    if len(command) > MAX_CHARACTERS:
        raise AsksError("a very long command")
    for character in command:
        if (ord(character) < 32 and character not in "\n\t") or ord(character) == 127:
            raise AsksError("a control character")
    try:
        source = join_lines(command).encode("utf-8")
    except UnicodeEncodeError:
        raise AsksError("a broken character") from None
    tree = Parser(_LANGUAGE).parse(source)
    if tree.root_node.has_error:
        raise AsksError("the command does not parse")
    root = copied(tree, source)
    _check_gaps(root, source)
    _check_heredocs(root, source)
    return root, source


def join_lines(command: str) -> str:
    """Remove every backslash-newline the shell would remove; ask where that depends on what is nested in what."""
    if "\\\n" not in command:
        return command
    if "`" in command or "$(" in command or "<<" in command or "${" in command or "$'" in command:
        raise AsksError("a continued line inside a nested command")
    out: list[str] = []
    state, index = "plain", 0
    while index < len(command):
        two, one = command[index : index + 2], command[index]
        if state == "single":
            state = "plain" if one == "'" else state
        elif state == "comment":
            state = "plain" if one == "\n" else state
        elif two == "\\\n":
            index += 2
            continue
        elif one == "\\":
            out.append(two)
            index += 2
            continue
        elif one == '"':
            state = "double" if state == "plain" else "plain"
        elif state == "plain" and one == "'":
            state = "single"
        elif state == "plain" and one == "#" and (not out or out[-1][-1] in " \t\n;&|()"):
            state = "comment"
        out.append(one)
        index += 1
    return "".join(out)


def _leaves(root: Node) -> Iterator[Node]:
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise AsksError("a deeply nested command")
        if not node.children or node.type in _OPAQUE:
            yield node
        else:
            waiting.extend((child, depth + 1) for child in reversed(node.children))


def _check_gaps(root: Node, source: bytes) -> None:
    end = 0
    for leaf in sorted(_leaves(root), key=lambda node: (node.start_byte, node.end_byte)):
        gap = source[end : leaf.start_byte]
        if gap.strip(b" \t\n"):
            raise AsksError("text the parser passed over")
        if leaf.type == "comment" and (
            b"\n" in source[leaf.start_byte : leaf.end_byte] or not _starts_word(source, leaf)
        ):
            raise AsksError("an unclear comment")
        if leaf.type not in _OPAQUE | {"heredoc_start", "heredoc_end"}:
            text = source[leaf.start_byte : leaf.end_byte]
            if not text.isascii():
                raise AsksError("an unquoted character outside ASCII")
        end = max(end, leaf.end_byte)
    if source[end:].strip(b" \t\n"):
        raise AsksError("text the parser passed over")


def _starts_word(source: bytes, node: Node) -> bool:
    return node.start_byte == 0 or source[node.start_byte - 1 : node.start_byte] in (
        b" ",
        b"\t",
        b"\n",
        b";",
        b"&",
        b"|",
        b"(",
        b")",
    )


def _check_heredocs(root: Node, source: bytes) -> None:
    """Find every heredoc's end again, by the shell's own rule, and compare with the grammar's."""
    redirects = [node for node in _walk(root) if node.type == "heredoc_redirect"]
    lines_with_one: set[int] = set()
    for node in redirects:
        line = node.row
        if line in lines_with_one:
            raise AsksError("two heredocs on one line")
        lines_with_one.add(line)
        line_end = source.find(b"\n", node.start_byte)
        head = source[node.start_byte : line_end if line_end >= 0 else len(source)].decode("utf-8")
        matched = _HEREDOC.match(head)
        if not matched or line_end < 0:
            raise AsksError("an unusual heredoc")
        delimiter = matched[2] or matched[3] or matched[4]
        end = _heredoc_end(source, line_end + 1, delimiter, tabs=bool(matched[1]))
        ends = [child for child in node.children if child.type == "heredoc_end"]
        if len(ends) != 1 or end is None or ends[0].start_byte > end or ends[0].end_byte != end + len(delimiter):
            raise AsksError("a heredoc with an unclear end")
        bodies = [child for child in node.children if child.type == "heredoc_body"]
        if any(body.start_byte < line_end or body.end_byte > end for body in bodies):
            raise AsksError("a heredoc with an unclear body")


def _heredoc_end(source: bytes, start: int, delimiter: str, *, tabs: bool) -> int | None:
    position = start
    for line in source[start:].split(b"\n"):
        stripped = line.lstrip(b"\t") if tabs else line
        if stripped == delimiter.encode():
            return position + len(line) - len(stripped)
        position += len(line) + 1
    return None


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)
