"""Text of a claim -> typed tree, by way of Python's own `ast` and a white list.

Nothing is ever evaluated as Python: the syntax tree is walked, every node kind that is not named here is refused with its
place, every name must be a table or a column, and every type must fit.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterable

from harness.prereg.language import tree
from harness.prereg.language.errors import ClaimError, Span
from harness.prereg.language.functions import AGGREGATES, DECIDE, KNOWN, PAIRED
from harness.prereg.language.schema import Schema, Type

MAX_CHARS = 4000
MAX_DEPTH = 60
PAIR_BY = ("task", "seed")

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_CONSTANTS = {"true": True, "false": False}


def parse(text: str, schema: Schema) -> tree.Claim:
    """Reads a claim.

    Raises:
        ClaimError: anything that is not of the language, unknown names and types that don't fit, with the place.
    """
    return _parse(text, schema, None)


def parse_condition(text: str, schema: Schema, table: str) -> tree.Claim:
    """Reads a condition on one row of `table`, as it stands inside `runs[...]`."""
    return _parse(text, schema, table)


def _parse(text: str, schema: Schema, table: str | None) -> tree.Claim:
    flat = " ".join(text.strip().splitlines())
    whole = Span(0, len(flat))
    if not flat:
        raise ClaimError("the claim is empty", flat, whole)
    if len(flat) > MAX_CHARS:
        raise ClaimError(f"longer than {MAX_CHARS} characters", flat, Span(MAX_CHARS, MAX_CHARS + 1))
    try:
        expression = ast.parse(flat, mode="eval").body
    except SyntaxError as e:
        at = max(0, (e.offset or 1) - 1)
        raise ClaimError(f"can't be read: {e.msg}", flat, Span(at, max(at + 1, (e.end_offset or 0) - 1))) from None
    except (ValueError, RecursionError, MemoryError):
        raise ClaimError(
            "can't be read: nested too deeply, or with a character that does not belong", flat, whole
        ) from None
    reader = _Reader(flat, schema)
    root = reader.node(expression, table, 0)
    if root.type is not Type.FLAG:
        raise reader.error(f"a claim is true or false, this is a {root.type}: compare it with something", expression)
    return tree.Claim(flat, root)


class _Reader:
    """Turns syntax nodes into typed ones. `table` is None at the level of the claim, else the table whose row is meant."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._bytes = text.encode()
        self._schema = schema

    def error(self, problem: str, node: ast.expr | ast.keyword) -> ClaimError:
        return ClaimError(problem, self._text, self._span(node))

    def node(self, node: ast.expr, table: str | None, depth: int) -> tree.Node:
        if depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} deep", node)
        depth += 1
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node, table)
            case ast.BoolOp():
                op = "and" if isinstance(node.op, ast.And) else "or"
                operands = tuple(self._typed(v, table, depth, Type.FLAG, f"a side of `{op}`") for v in node.values)
                return tree.Logic(self._span(node), op, operands)
            case ast.UnaryOp(op=ast.Not()):
                return tree.Not(
                    self._span(node), self._typed(node.operand, table, depth, Type.FLAG, "what follows `not`")
                )
            case ast.UnaryOp(op=ast.USub()):
                operand = self._typed(node.operand, table, depth, Type.NUMBER, "what follows `-`")
                zero = tree.Literal(self._span(node), Type.NUMBER, 0.0)
                return tree.Arithmetic(self._span(node), "-", zero, operand)
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                op = _ARITHMETIC[type(node.op)]
                left = self._typed(node.left, table, depth, Type.NUMBER, f"a side of `{op}`")
                right = self._typed(node.right, table, depth, Type.NUMBER, f"a side of `{op}`")
                return tree.Arithmetic(self._span(node), op, left, right)
            case ast.Compare():
                return self._comparison(node, table, depth)
            case ast.Call():
                return self._call(node, table, depth)
            case ast.Subscript():
                raise self.error("a selection of rows stands inside a function, such as count(runs[...], solved)", node)
        raise self.error(
            f'{type(node).__name__} is not part of the claim language: names, numbers, "texts", comparisons, '
            "and/or/not, + - * /, in [...] and its functions are",
            node,
        )

    def _typed(self, node: ast.expr, table: str | None, depth: int, wanted: Type, what: str) -> tree.Node:
        built = self.node(node, table, depth)
        if built.type is not wanted:
            raise self.error(f"{what} must be a {wanted}, this is a {built.type}", node)
        return built

    def _constant(self, node: ast.Constant) -> tree.Literal:
        value = node.value
        if isinstance(value, bool):
            return tree.Literal(self._span(node), Type.FLAG, value)
        if isinstance(value, str):
            return tree.Literal(self._span(node), Type.TEXT, value)
        if isinstance(value, (int, float)):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return tree.Literal(self._span(node), Type.NUMBER, number)
            raise self.error("this number is too large", node)
        if value is None:
            raise self.error("nothing is compared with null; known(column) says whether a value is known", node)
        raise self.error(f"{value!r} is neither a number, a text nor True or False", node)

    def _name(self, node: ast.Name, table: str | None) -> tree.Node:
        if node.id in _CONSTANTS:
            return tree.Literal(self._span(node), Type.FLAG, _CONSTANTS[node.id])
        if node.id == "null":
            raise self.error("nothing is compared with null; known(column) says whether a value is known", node)
        if table is None:
            if node.id in self._schema.tables:
                raise self.error(f"a table stands inside a function, such as count({node.id}, ...)", node)
            raise self.error(
                f"{node.id!r} stands outside a function; columns are named inside one, such as count(runs, {node.id})",
                node,
            )
        columns = self._schema.tables[table]
        if node.id not in columns:
            raise self.error(f"{table} has no column {node.id!r}{_hint(node.id, columns)}", node)
        column = columns[node.id]
        return tree.Cell(self._span(node), column.type, table, node.id, column)

    def _comparison(self, node: ast.Compare, table: str | None, depth: int) -> tree.Node:
        parts: list[tree.Node] = []
        left_node = node.left
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            parts.append(self._compare_two(node, op, left_node, right_node, table, depth))
            left_node = right_node
        return parts[0] if len(parts) == 1 else tree.Logic(self._span(node), "and", tuple(parts))

    def _compare_two(
        self,
        whole: ast.Compare,
        op: ast.cmpop,
        left_node: ast.expr,
        right_node: ast.expr,
        table: str | None,
        depth: int,
    ) -> tree.Node:
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._membership(whole, isinstance(op, ast.NotIn), left_node, right_node, table, depth)
        if type(op) not in _COMPARISONS:
            raise self.error("`is` is not part of the claim language; use == or known(...)", whole)
        sign = _COMPARISONS[type(op)]
        left, right = self.node(left_node, table, depth), self.node(right_node, table, depth)
        return self._comparable(self._span(whole), sign, left, right, right_node)

    def _comparable(self, span: Span, sign: str, left: tree.Node, right: tree.Node, at: ast.expr) -> tree.Comparison:
        if left.type is not right.type:
            raise self.error(f"a {left.type} can't be compared with a {right.type}", at)
        if sign not in ("==", "!=") and left.type is not Type.NUMBER:
            raise self.error(f"a {left.type} has no order; only == and != fit it", at)
        for cell, literal in ((left, right), (right, left)):
            if isinstance(cell, tree.Cell) and isinstance(literal, tree.Literal) and cell.column.values:
                value = str(literal.value)
                if value not in cell.column.values:
                    raise self.error(
                        f"{cell.name} is never {value!r}{_hint(value, cell.column.values, 'possible')}", at
                    )
        return tree.Comparison(span, sign, left, right)

    def _membership(
        self,
        whole: ast.Compare,
        negated: bool,
        left_node: ast.expr,
        right_node: ast.expr,
        table: str | None,
        depth: int,
    ) -> tree.Node:
        if not isinstance(right_node, (ast.List, ast.Tuple)) or not right_node.elts:
            raise self.error("`in` takes a list of values, such as in [4096, 8192]", right_node)
        left = self.node(left_node, table, depth)
        options = []
        for element in right_node.elts:
            option = self.node(element, table, depth)
            options.append(self._comparable(self._span(whole), "==", left, option, element))
        built = tree.Logic(self._span(whole), "or", tuple(options))
        return tree.Not(self._span(whole), built) if negated else built

    def _call(self, node: ast.Call, table: str | None, depth: int) -> tree.Node:
        if not isinstance(node.func, ast.Name):
            raise self.error("only the functions of the claim language can be called", node.func)
        name = node.func.id
        known = [*AGGREGATES, *PAIRED, KNOWN.name]
        if name not in known:
            raise self.error(f"there is no function {name!r}{_hint(name, known, 'functions')}", node.func)
        if name == KNOWN.name:
            self._arguments(node, 1, f"known takes one value, such as {KNOWN.example}")
            if table is None:
                raise self.error("known(...) looks at one row; it stands inside a function such as count", node)
            return tree.Known(self._span(node), self.node(node.args[0], table, depth))
        if table is not None:
            raise self.error(f"{name}(...) looks at many rows and can't stand inside a condition on one row", node)
        return self._aggregate(node, name, depth) if name in AGGREGATES else self._paired(node, name, depth)

    def _aggregate(self, node: ast.Call, name: str, depth: int) -> tree.Aggregate:
        function = AGGREGATES[name]
        self._arguments(node, 2, f"{name} takes rows and a {function.takes}, such as {function.example}")
        rows = self._rows(node.args[0], depth)
        body = self._typed(node.args[1], rows.table, depth, function.takes, f"what {name} looks at")
        return tree.Aggregate(self._span(node), function.gives, name, rows, body)

    def _paired(self, node: ast.Call, name: str, depth: int) -> tree.Paired:
        function = PAIRED[name]
        decide = "estimate"
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg != "decide" or value not in DECIDE:
                raise self.error(f'{name} takes decide="estimate" or decide="interval"', keyword)
            decide = str(value)
        self._arguments(node, 3, f"{name} takes two selections and a number, such as {function.example}", keywords=True)
        first, second = self._rows(node.args[0], depth), self._rows(node.args[1], depth)
        if first.table != second.table:
            raise self.error(f"both selections of {name} must be of one table", node.args[1])
        if any(column not in self._schema.tables[first.table] for column in PAIR_BY):
            raise self.error(f"{first.table} has no {' and '.join(PAIR_BY)} to pair by", node.args[0])
        body = self._typed(node.args[2], first.table, depth, function.takes, f"what {name} looks at")
        return tree.Paired(self._span(node), name, first, second, body, decide)

    def _arguments(self, node: ast.Call, number: int, usage: str, *, keywords: bool = False) -> None:
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if len(node.args) != number or starred or (node.keywords and not keywords):
            raise self.error(usage, node)

    def _rows(self, node: ast.expr, depth: int) -> tree.Rows:
        match node:
            case ast.Name():
                return tree.Rows(self._span(node), self._table(node), None)
            case ast.Subscript(value=ast.Name() as name):
                table = self._table(name)
                conditions = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                built = tuple(self._typed(c, table, depth, Type.FLAG, "a condition of a selection") for c in conditions)
                if not built:
                    raise self.error("a selection needs a condition", node)
                both = built[0] if len(built) == 1 else tree.Logic(self._span(node.slice), "and", built)
                return tree.Rows(self._span(node), table, both)
        raise self.error("here stands a table or a selection, such as runs or runs[solved]", node)

    def _table(self, node: ast.Name) -> str:
        if node.id not in self._schema.tables:
            raise self.error(f"there is no table {node.id!r}{_hint(node.id, self._schema.tables, 'tables')}", node)
        return node.id

    def _span(self, node: ast.expr | ast.keyword) -> Span:
        start, end = node.col_offset, node.end_col_offset or node.col_offset + 1
        return Span(len(self._bytes[:start].decode()), len(self._bytes[:end].decode()))


def _hint(name: str, known: Iterable[str], what: str = "columns") -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"{meant} ({what}: {', '.join(names)})"
