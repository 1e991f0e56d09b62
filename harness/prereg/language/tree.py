"""A claim as a typed tree. Only the parser builds it, and only after the types fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.prereg.language.errors import Span
from harness.prereg.language.schema import Column, Type


@dataclass(frozen=True)
class Literal:
    span: Span
    type: Type
    value: bool | float | str


@dataclass(frozen=True)
class Cell:
    """A column's value in the row that is being looked at."""

    span: Span
    type: Type
    table: str
    name: str
    column: Column


@dataclass(frozen=True)
class Comparison:
    span: Span
    op: str
    left: Node
    right: Node
    type: Type = Type.FLAG


@dataclass(frozen=True)
class Logic:
    """op is `and` or `or`."""

    span: Span
    op: str
    operands: tuple[Node, ...]
    type: Type = Type.FLAG


@dataclass(frozen=True)
class Not:
    span: Span
    operand: Node
    type: Type = Type.FLAG


@dataclass(frozen=True)
class Arithmetic:
    """op is one of + - * /."""

    span: Span
    op: str
    left: Node
    right: Node
    type: Type = Type.NUMBER


@dataclass(frozen=True)
class Known:
    """True where the operand's value is known; never unknown itself."""

    span: Span
    operand: Node
    type: Type = Type.FLAG


@dataclass(frozen=True)
class Rows:
    """The rows of one table for which the condition holds; all of them when there is none."""

    span: Span
    table: str
    condition: Node | None


@dataclass(frozen=True)
class Aggregate:
    """One number or truth out of many rows: `function` over `body` in each of `rows`."""

    span: Span
    type: Type
    function: str
    rows: Rows
    body: Node


@dataclass(frozen=True)
class Paired:
    """Two arms compared pair by pair of task and seed; `decide` is `estimate` or `interval`."""

    span: Span
    function: str
    first: Rows
    second: Rows
    body: Node
    decide: str
    type: Type = Type.NUMBER


Node = Literal | Cell | Comparison | Logic | Not | Arithmetic | Known | Aggregate | Paired


@dataclass(frozen=True)
class Claim:
    """A parsed claim: its text (one line) and its tree, whose type is FLAG."""

    text: str
    root: Node

    def source(self, node: Node | Rows) -> str:
        """The text of one part of the claim."""
        return self.text[node.span.start : node.span.end]


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node, conditions of selections included."""
    match node:
        case Comparison() | Arithmetic():
            return (node.left, node.right)
        case Logic():
            return node.operands
        case Not() | Known():
            return (node.operand,)
        case Aggregate():
            return (*_condition(node.rows), node.body)
        case Paired():
            return (*_condition(node.first), *_condition(node.second), node.body)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def _condition(rows: Rows) -> tuple[Node, ...]:
    return () if rows.condition is None else (rows.condition,)
