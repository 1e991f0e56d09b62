"""Can a claim lose? A search for a table on which it is false.

Tables are drawn within the declared ranges of the columns, near the numbers the claim itself names, first with the same
values in every row, then the same within an arm, then row by row. Finding one proves that the claim can lose; finding none
in `tries` tables proves nothing, so such a claim is *named* vacuous, with the number of tables that were looked at.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.prereg.cells import COLUMN_OF_SETTING, Cell
from harness.prereg.language import Claim, Column, Row, Schema, Table, Tables, Type, evaluate, evaluate_row
from harness.prereg.language import parse_condition as parse_row_condition
from harness.prereg.language.rows import Plain, shown_value
from harness.prereg.language.tree import Aggregate, Comparison, Literal, Paired, walk
from harness.prereg.language.tree import Cell as CellNode
from harness.prereg.predictions import Prediction

TRIES = 2000
_ROW_ATTEMPTS = 40
_SEEDS = 3
_OTHER = "(any other)"
_ARM_COLUMNS = tuple(name for name in COLUMN_OF_SETTING.values() if name != "seed")


@dataclass(frozen=True)
class Example:
    """tables: what was drawn. columns: by table, those the claim reads. arms: by table, the columns in which its arms differ.
    tried: how many tables were looked at to find it."""

    tables: Tables
    columns: Mapping[str, tuple[str, ...]]
    arms: Mapping[str, tuple[str, ...]]
    tried: int

    def lines(self) -> list[str]:
        """The rows as text, equal ones once with their number; the arm only where rows differ in more than that."""
        out = []
        for name, table in self.tables.items():
            rows = [self._texts(row, self.columns[name]) for row in table.rows]
            if len({tuple(row.items()) for row in rows}) == 1 or not rows:
                columns = list(self.columns[name])
            else:
                columns = [*self.arms[name], *self.columns[name]]
            texts = [", ".join(f"{k}={v}" for k, v in self._texts(row, columns).items()) for row in table.rows]
            out += [f"{name}: {texts.count(text)} x ({text})" for text in dict.fromkeys(texts)]
        return out

    @staticmethod
    def _texts(row: Row, columns: Sequence[str]) -> dict[str, str]:
        return {name: shown_value(row.values.get(name)) for name in columns}


def find_example(
    claim: Claim,
    schema: Schema,
    prediction: Prediction,
    grid: Sequence[Cell] | None = None,
    *,
    wanted: bool = False,
    tries: int = TRIES,
) -> Example | None:
    """A table on which the claim is false (or, with wanted=True, true); None when none of `tries` is."""
    search = _Search(claim, schema, prediction, grid)
    for number in range(tries):
        tables = search.draw(("same", "arm", "row", "row")[number * 4 // tries])
        if tables is not None and evaluate(claim, tables).truth.value is wanted:
            return Example(tables, *search.shown(tables), number + 1)
    return None


class _Search:
    def __init__(self, claim: Claim, schema: Schema, prediction: Prediction, grid: Sequence[Cell] | None) -> None:
        self._random = random.Random(0)
        self._schema = schema
        nodes = list(walk(claim.root))
        self._numbers = {float(n.value) for n in nodes if isinstance(n, Literal) and n.type is Type.NUMBER}
        compared = _compared_with(nodes)
        self._texts = {name: [v for v in values if isinstance(v, str)] for name, values in compared.items()}
        self._columns: dict[str, dict[str, Column]] = {name: {} for name in _tables(nodes)}
        for node in nodes:
            if isinstance(node, CellNode):
                self._columns[node.table][node.name] = node.column
        self._constraints = {table: self._constraints_of(table) for table in self._columns}
        self._arms = list(_arms(prediction, grid, compared))
        self._arm_names = list(dict.fromkeys(name for arm in self._arms for name in arm))

    def _constraints_of(self, table: str) -> list[Claim]:
        """The constraints that tie two or more of the claim's columns; their other columns are drawn along with them."""
        chosen = []
        used = set(self._columns[table])
        for text in self._schema.constraints.get(table, ()):
            condition = parse_row_condition(text, self._schema, table)
            cells = [n for n in walk(condition.root) if isinstance(n, CellNode)]
            if len({c.name for c in cells} & used) >= min(2, len({c.name for c in cells})):
                chosen.append(condition)
                self._columns[table].update({c.name: c.column for c in cells})
        return chosen

    def draw(self, mode: str) -> Tables | None:
        tables = {}
        for name, columns in self._columns.items():
            of_runs = "run_id" in self._schema.tables[name]
            bases: list[dict[str, Any]] = self._arms if of_runs else [{}]
            per_base = 1 if name == "runs" else self._random.randint(1, 3)
            drawn: dict[tuple[Any, ...], dict[str, Plain]] = {}
            rows = []
            for number, base in enumerate(bases):
                run_id = f"run {number + 1}"
                for part in range(per_base):
                    key = {"same": (), "arm": _arm_key(base), "row": (number, part)}[mode]
                    fixed = {k: v for k, v in base.items() if k in self._schema.tables[name]}
                    if key not in drawn:
                        free = self._row(name, {k: c for k, c in columns.items() if k not in fixed}, fixed)
                        if free is None:
                            return None
                        drawn[key] = free
                    rows.append(Row(run_id, {**drawn[key], **fixed, "run_id": run_id}, run_id))
            tables[name] = Table(name, tuple(rows), one_row_per_run=name == "runs")
        return tables

    def _row(self, table: str, columns: Mapping[str, Column], fixed: Mapping[str, Plain]) -> dict[str, Plain] | None:
        for _ in range(_ROW_ATTEMPTS):
            values = {name: self._value(name, column) for name, column in columns.items()}
            row = Row("drawn", {**values, **fixed})
            if all(evaluate_row(c, table, row).value is not False for c in self._constraints[table]):
                return values
        return None

    def _value(self, name: str, column: Column) -> Plain:
        if column.type is Type.FLAG:
            return self._random.random() < 0.5
        if column.type is Type.TEXT:
            return self._random.choice(column.values or (*self._texts.get(name, ()), _OTHER))
        near = [n + d for n in self._numbers for d in (-1, 0, 1)] + [n * f for n in self._numbers for f in (0.5, 2)]
        low = column.low if math.isfinite(column.low) else -1000.0
        high = column.high if math.isfinite(column.high) else 1000.0
        near += [
            low,
            high,
            *(self._random.uniform(low, high) for _ in range(2)),
            *(self._random.uniform(0, 10) for _ in range(3)),
        ]
        fitting = [value for value in near if column.low <= value <= column.high]
        value = self._random.choice(fitting)
        return float(round(value)) if column.whole and column.low <= round(value) <= column.high else round(value, 3)

    def shown(self, tables: Tables) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
        """By table: the columns the claim reads, and the other ones in which its arms differ."""
        read = {name: tuple(self._columns[name]) for name in tables}
        arms = {}
        for name, table in tables.items():
            differ = [k for k in self._arm_names if len({str(row.values.get(k)) for row in table.rows}) > 1]
            arms[name] = tuple(k for k in differ if k in self._schema.tables[name] and k not in read[name])
        return read, arms


def _arms(
    prediction: Prediction, grid: Sequence[Cell] | None, compared: Mapping[str, Sequence[Plain]]
) -> Iterator[dict[str, Any]]:
    """The arm columns of each run: those of the grid's cells, without a grid those that cells and claim name."""
    covered = [c.columns() for c in grid or () if prediction.covers(c.columns()) is not False]
    if covered:
        yield from covered
        return
    named = {name: values for name, values in compared.items() if name in _ARM_COLUMNS} | dict(prediction.cells)
    for values in itertools.product(*named.values()):
        arm = dict(zip(named, values, strict=True))
        for seed in range(_SEEDS):
            yield {"task": "task", "seed": seed, **arm}


def _arm_key(base: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(str(v) for k, v in base.items() if k != "seed")


def _tables(nodes: Sequence[Any]) -> list[str]:
    names = []
    for node in nodes:
        if isinstance(node, Aggregate):
            names.append(node.rows.table)
        elif isinstance(node, Paired):
            names.append(node.first.table)
    return list(dict.fromkeys(names))


def _compared_with(nodes: Sequence[Any]) -> dict[str, list[Plain]]:
    """Column -> the texts and numbers the claim compares it with."""
    found: dict[str, dict[Plain, None]] = {}
    for node in nodes:
        if isinstance(node, Comparison):
            for cell, literal in ((node.left, node.right), (node.right, node.left)):
                if isinstance(cell, CellNode) and isinstance(literal, Literal):
                    found.setdefault(cell.name, {})[literal.value] = None
    return {name: list(values) for name, values in found.items()}
