"""Tree + tables -> truth of three values, with the numbers that decided it.

Empty selections never decide anything: whatever looks at no row is undetermined. Missing runs of the grid stand in the
runs table as rows of which only the arm is known, and leave selections of other tables open (see `harness.prereg.data`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.prereg.language import aggregates, paired, tree
from harness.prereg.language.rows import Row, Selection, Table, Tables
from harness.prereg.language.schema import Type
from harness.prereg.language.values import (
    Gap,
    Null,
    Number,
    Reasons,
    Text,
    Truth,
    Value,
    arithmetic,
    compare,
    conjunction,
    disjunction,
    exactly,
    merge,
    negate,
)

__all__ = ["Finding", "Result", "evaluate", "evaluate_row"]


@dataclass(frozen=True)
class Finding:
    """What one function of a claim came to.

    source: the function as written. value: its result, None when not known. low, high: bounds of a number (None when not
    a number or without bound). rows: the rows it looked at, each with `row` (its name), `run_id`, `result` (what the
    function looks at, in this row; None when not known) and the columns read. unknown: why results are not known, whether
    or not that matters. facts: what else belongs to it, such as the interval and the pairs of a comparison.
    """

    source: str
    value: bool | float | str | None
    low: float | None
    high: float | None
    rows: tuple[Mapping[str, object], ...]
    unknown: Reasons = ()
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """truth: of the claim. findings: one per function looked at, in reading order."""

    truth: Truth
    findings: tuple[Finding, ...]


def evaluate(claim: tree.Claim, tables: Tables) -> Result:
    """Evaluates a claim over tables; never raises for what the data hold."""
    evaluator = _Evaluator(claim, tables)
    value = evaluator.value(claim.root, None)
    assert isinstance(value, Truth)
    return Result(value, tuple(evaluator.findings))


def evaluate_row(condition: tree.Claim, table: str, row: Row) -> Truth:
    """Evaluates a condition (see `parse_condition`) on one row."""
    value = _Evaluator(condition, {table: Table(table, (row,))}).value(condition.root, row)
    assert isinstance(value, Truth)
    return value


class _Evaluator:
    def __init__(self, claim: tree.Claim, tables: Tables) -> None:
        self._claim = claim
        self._tables = tables
        self.findings: list[Finding] = []

    def value(self, node: tree.Node, row: Row | None) -> Value:
        match node:
            case tree.Literal():
                return _literal(node)
            case tree.Cell():
                assert row is not None
                return self._cell(node, row)
            case tree.Comparison():
                return compare(node.op, self.value(node.left, row), self.value(node.right, row))
            case tree.Logic():
                join = conjunction if node.op == "and" else disjunction
                # All sides are looked at, so that the findings are complete whichever side decides.
                return join([self._truth(operand, row) for operand in node.operands])
            case tree.Not():
                return negate(self._truth(node.operand, row))
            case tree.Arithmetic():
                return arithmetic(node.op, self._number(node.left, row), self._number(node.right, row))
            case tree.Known():
                return Truth(_known(self.value(node.operand, row)) is not None)
            case tree.Aggregate():
                return self._aggregate(node)
            case tree.Paired():
                return self._paired(node)

    def _truth(self, node: tree.Node, row: Row | None) -> Truth:
        value = self.value(node, row)
        assert isinstance(value, Truth)
        return value

    def _number(self, node: tree.Node, row: Row | None) -> Number:
        value = self.value(node, row)
        assert isinstance(value, Number)
        return value

    def _cell(self, node: tree.Cell, row: Row) -> Value:
        value = row.values.get(node.name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if node.type is Type.NUMBER and is_number:
            return exactly(float(value))  # type: ignore[arg-type]
        if node.type is Type.FLAG and isinstance(value, bool):
            return Truth(value)
        if node.type is Type.TEXT and isinstance(value, str):
            return Text(value)
        because: Reasons
        if value is not None:
            because = (Gap(f"{node.name} of {row.name} is {value!r}, not a {node.type}"),)
        elif node.name not in row.values and not row.missing:
            because = (Gap(f"the {node.table} table has no column {node.name}"),)
        else:
            because = (Null(node.table, row.name, node.name),)
        if node.type is Type.NUMBER:
            return Number(node.column.low, node.column.high, because)
        return Truth(None, because) if node.type is Type.FLAG else Text(None, because)

    def _select(self, rows: tree.Rows) -> Selection:
        table = self._tables.get(rows.table)
        if table is None:
            return Selection((), (), (), (Gap(f"there is no {rows.table} table"),))
        certain, possible = [], []
        doubts: list[Reasons] = []
        open_because: list[Reasons] = []
        for row in table.rows:
            belongs = Truth(None, row.doubt) if row.doubt else Truth(True)
            member = belongs if rows.condition is None else conjunction([belongs, self._truth(rows.condition, row)])
            if member.value is False:
                continue
            if row.missing and not table.one_row_per_run:
                open_because.append((Gap(f"{row.name} is missing"),))
            elif member.value is True:
                certain.append(row)
            else:
                possible.append(row)
                doubts.append(member.because)
        open_reasons = merge(*open_because)
        empty = not certain and not possible and not open_reasons
        gap = (Gap(f"{self._claim.source(rows)} selects none of {len(table.rows)} rows"),) if empty else ()
        return Selection(
            tuple(certain), tuple(possible), merge(*doubts), merge(open_reasons, gap), is_open=bool(open_reasons)
        )

    def _aggregate(self, node: tree.Aggregate) -> Value:
        selection = self._select(node.rows)
        results = {id(row): self.value(node.body, row) for row in (*selection.certain, *selection.possible)}
        certain = [results[id(row)] for row in selection.certain]
        possible = [results[id(row)] for row in selection.possible]
        value = aggregates.apply(node.function, selection, certain, possible)
        self._found(node, value, [(node.rows, selection)], results, {})
        return value

    def _paired(self, node: tree.Paired) -> Number:
        first, second = self._select(node.first), self._select(node.second)
        rows = (*first.certain, *first.possible, *second.certain, *second.possible)
        results = {id(row): self._number(node.body, row) for row in rows}
        comparison = paired.compare_pairs(node.function, first, second, results)
        value = comparison.decided_by_interval() if node.decide == "interval" else comparison.estimate
        facts = {**comparison.facts(), "decided_by": node.decide}
        self._found(node, value, [(node.first, first), (node.second, second)], results, facts)
        return value

    def _found(
        self,
        node: tree.Aggregate | tree.Paired,
        value: Value,
        selections: list[tuple[tree.Rows, Selection]],
        results: Mapping[int, Value],
        facts: Mapping[str, object],
    ) -> None:
        shown: list[Mapping[str, object]] = []
        for rows, selection in selections:
            parts = [*tree.walk(node.body), *(tree.walk(rows.condition) if rows.condition else ())]
            names = list(dict.fromkeys(part.name for part in parts if isinstance(part, tree.Cell)))
            for row in (*selection.certain, *selection.possible):
                columns = {name: row.values.get(name) for name in names}
                shown.append({"row": row.name, "run_id": row.run_id, "result": _known(results[id(row)]), **columns})
        unknown = merge(
            *(s.because + s.doubts for _, s in selections), *(result.because for result in results.values())
        )
        low, high = (_finite(value.low), _finite(value.high)) if isinstance(value, Number) else (None, None)
        finding = Finding(self._claim.source(node), _known(value), low, high, tuple(shown), unknown, facts)
        self.findings.append(finding)


def _literal(node: tree.Literal) -> Value:
    if node.type is Type.NUMBER:
        return exactly(float(node.value))
    return Truth(bool(node.value)) if node.type is Type.FLAG else Text(str(node.value))


def _known(value: Value) -> bool | float | str | None:
    if isinstance(value, Number):
        return value.low if value.exact else None
    return value.value


def _finite(bound: float) -> float | None:
    return bound if abs(bound) != float("inf") else None
