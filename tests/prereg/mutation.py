"""Finds changes of a prediction's data that change its verdict, and takes its data away.

A change is one column, else two, of what the claim reads: in all rows of a table, else in one row. The new values are near the
numbers and texts of the claim and of the data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from harness.prereg.cells import COLUMN_OF_SETTING
from harness.prereg.language import Schema, Type, parse
from harness.prereg.language.tree import Cell, Literal, walk
from harness.prereg.predictions import Prediction, Predictions
from harness.prereg.verdicts import Verdict, judge, schema_of

WHICH_ROWS = ("group", "fact", *COLUMN_OF_SETTING.values())
Frames = Mapping[str, pd.DataFrame]


def verdict_of(prediction: Prediction, data: str | None, frames: Frames) -> Verdict:
    predictions = Predictions("x", (prediction,), data=data)
    return judge(predictions, frames, tries=0)[prediction.id].verdict


def flipping_changes(prediction: Prediction, predictions: Predictions, frames: Frames) -> Iterator[tuple[str, Verdict]]:
    """Every change that gives another verdict: what was changed, and the verdict it gives."""
    schema = schema_of(predictions).with_frames(frames)
    before = verdict_of(prediction, predictions.data, frames)
    read = columns_read(prediction, schema)
    for size in (1, 2):
        for (table, wide), chosen in itertools.product(_places(prediction, frames, read), _combinations(read, size)):
            if any(owner != table for owner, _ in chosen):
                continue
            options = [_values(name, prediction, schema, frames[table]) for _, name in chosen]
            for values in itertools.product(*options):
                changed = frames[table].astype(object).copy()
                for (_, name), value in zip(chosen, values, strict=True):
                    changed.loc[wide, name] = value
                after = verdict_of(prediction, predictions.data, {**frames, table: changed})
                if after is not before:
                    yield f"{table}.{[n for _, n in chosen]} = {list(values)} in rows {list(wide)}", after


def without_rows(prediction: Prediction, predictions: Predictions, frames: Frames) -> Verdict:
    """The verdict when all rows its claims look at are gone."""
    judged = judge(Predictions("x", (prediction,), data=predictions.data), frames, tries=0)[prediction.id]
    used = {str(row["row"]) for claim in judged.claims for finding in claim.findings for row in finding.rows}
    kept = {
        name: frame[[_row_name(name, number, row) not in used for number, row in enumerate(frame.to_dict("records"))]]
        for name, frame in frames.items()
    }
    return verdict_of(prediction, predictions.data, kept)


def columns_read(prediction: Prediction, schema: Schema) -> list[tuple[str, str]]:
    """(table, column) of every fact its claims read; what only says which rows are meant is no fact."""
    found = {}
    for text in _claims(prediction):
        for node in walk(parse(text, schema).root):
            if isinstance(node, Cell) and node.name not in WHICH_ROWS:
                found[(node.table, node.name)] = None
    return list(found)


def _claims(prediction: Prediction) -> list[str]:
    return [part.claim for part in prediction.parts] + ([prediction.means] if prediction.means else [])


def _places(prediction: Prediction, frames: Frames, read: list[tuple[str, str]]) -> Iterator[tuple[str, list[int]]]:
    """All rows of the prediction's cells first, which most often decides, then single rows."""
    for table in dict.fromkeys(table for table, _ in read):
        frame = frames[table]
        rows = [
            n
            for n, row in enumerate(frame.to_dict("records"))
            if table != "runs" or prediction.covers(row) is not False
        ]
        yield table, rows
        yield from ((table, [n]) for n in rows)


def _combinations(read: list[tuple[str, str]], size: int) -> list[tuple[tuple[str, str], ...]]:
    return list(itertools.combinations(read, size))


def _values(column: str, prediction: Prediction, schema: Schema, frame: pd.DataFrame) -> list[Any]:
    spec = next(columns[column] for columns in schema.tables.values() if column in columns)
    literals = [
        node.value
        for text in _claims(prediction)
        for node in walk(parse(text, schema).root)
        if isinstance(node, Literal)
    ]
    if spec.type is Type.FLAG:
        return [True, False]
    if spec.type is Type.TEXT:
        return [*(v for v in literals if isinstance(v, str)), *list(spec.values)[:2], "something else"]
    numbers = [v for v in literals if isinstance(v, float)]
    seen = [float(v) for v in frame[column].dropna().unique()] if column in frame else []
    near = dict.fromkeys(v + d for v in (*numbers, *seen, 0.0) for d in (-1, 0, 1))
    return [v for v in near if spec.low <= v <= spec.high]


def _row_name(table: str, number: int, row: Mapping[str, Any]) -> str:
    label = next(str(row[key]) for key in ("run_id", "group") if row.get(key) is not None)
    return label if table == "runs" else f"{label}, row {number + 1} of {table}"
