"""Redirections: reading inside the copy and writing to the null device are fine, everything else asks."""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.nodes import Node
from harness.agent.approval.shell.state import State
from harness.agent.approval.shell.values import UNKNOWN, Value
from harness.agent.approval.shell.words import heredoc_value, single

if TYPE_CHECKING:
    from harness.agent.approval.shell.script import Script

_SINKS = ("/dev/null", "/dev/stdout", "/dev/stderr")
_WRITES = (">", ">>", ">|", "&>", "&>>")


@dataclass(frozen=True)
class Flow:
    """What redirections do: `stdin` (None: unchanged), whether standard output goes elsewhere (`kept`), whether the
    command's own output is still what comes out, words the grammar hung on them (`extra`), statements after a heredoc,
    and the descriptors known to be `open`: nobody knows where others lead.
    """

    stdin: Value | None = None
    kept: bool = False
    output_known: bool = True
    extra: tuple[Node, ...] | list[Node] = ()
    after: tuple[Node, ...] = ()
    open: frozenset[str] = frozenset("012")


def touching(nodes: list[Node]) -> list[list[Node]]:
    """Group nodes without a gap between them: each group is one word."""
    groups: list[list[Node]] = []
    for node in nodes:
        if groups and groups[-1][-1].end_byte == node.start_byte:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def test_tokens(node: Node) -> list[Node]:
    """The tokens of a bracket test, in order; joints and comparisons that are redirections in some shell ask."""
    if node.type in ("unary_expression", "binary_expression"):
        return [token for child in node.children for token in test_tokens(child)]
    if not node.is_named and node.type not in ("=", "==", "!=", "=~", "!"):
        raise AsksError("a test with an operator that shells read differently")
    return [node]


def read(script: "Script", nodes: list[Node], state: State) -> Flow:
    """Judge redirections in order."""
    flow = Flow(extra=[])
    for node in nodes:
        if script.source[: node.start_byte].endswith(b"}"):
            # bash stores a descriptor under the name in {name}>, also PATH or an array's subscript that runs a command.
            raise AsksError("a redirection right behind a brace")
        if node.type == "heredoc_redirect":
            flow = _heredoc(script, node, state, flow)
        elif node.type == "herestring_redirect":
            single(list(node.named_children), script.source, script.expansion(state))
            flow = replace(flow, stdin=UNKNOWN)
        else:
            flow = _file(script, node, state, flow)
    return flow


def _file(script: "Script", node: Node, state: State, flow: Flow) -> Flow:
    children = list(node.children)
    descriptor = children.pop(0).text if children[0].type == "file_descriptor" else ""
    operator = children.pop(0).type
    groups = touching(children)
    if descriptor and not descriptor.isdigit():
        raise AsksError("an unusual redirection")
    if operator in (">&-", "<&-"):
        return replace(flow, extra=[*flow.extra, *children])
    if not groups:
        raise AsksError("an unusual redirection")
    target = single(groups[0], script.source, script.expansion(state))
    extra = [node for group in groups[1:] for node in group]
    if operator == "<":
        words = script.words(groups[0], state)
        if len(words) != 1:
            raise AsksError("an unusual redirection")
        Call("<", (), state, script).read(words[0])
        # Only names that come through a pipe are tracked; a file may hold anything.
        return replace(
            flow,
            stdin=UNKNOWN if descriptor in ("", "0") else flow.stdin,
            extra=[*flow.extra, *extra],
            open=flow.open | {descriptor},
        )
    if operator in _WRITES or (operator == ">&" and not re.fullmatch(r"\d", target.text or "")):
        if target.text not in _SINKS:
            raise AsksError(f"writes to {target.text or 'a file'}")
        if operator in ("&>", "&>>", ">&") and extra:
            # dash ends the command at the &.
            raise AsksError("words after &>, which shells read differently")
    elif operator not in (">&", "<&") or not re.fullmatch(r"\d", target.text or ""):
        raise AsksError("an unusual redirection")
    elif target.text not in flow.open:
        raise AsksError(f"descriptor {target.text}, which the command does not open")
    quiet = descriptor == "2" and target.text == "/dev/null"
    return replace(
        flow,
        kept=flow.kept or (operator != "<&" and descriptor in ("", "1")),
        output_known=flow.output_known and quiet,
        extra=[*flow.extra, *extra],
        open=flow.open | {descriptor},
    )


def _heredoc(script: "Script", node: Node, state: State, flow: Flow) -> Flow:
    start = next(child for child in node.children if child.type == "heredoc_start")
    end = next(child for child in node.children if child.type == "heredoc_end")
    bodies = [child for child in node.children if child.type == "heredoc_body"]
    if not start.text.startswith(("'", '"')):
        first = script.source.find(b"\n", node.start_byte) + 1
        heredoc_value(bodies, script.source, script.expansion(state), first, end.start_byte)
    rest = [
        c
        for c in node.children
        if c.is_named and c.type not in ("heredoc_start", "heredoc_end", "heredoc_body", "file_descriptor")
    ]
    inner = read(script, [c for c in rest if c.type in ("file_redirect", "herestring_redirect")], state)
    statements = [c for c in rest if c.type in ("pipeline", "list", "command", "redirected_statement", "test_command")]
    words = [c for c in rest if c.type not in ("file_redirect", "herestring_redirect") and c not in statements]
    return replace(
        inner,
        stdin=UNKNOWN,
        kept=inner.kept or flow.kept,
        output_known=inner.output_known and flow.output_known,
        extra=[*flow.extra, *words, *inner.extra],
        after=(*flow.after, *statements),
    )
