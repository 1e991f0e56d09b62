"""DataFrames -> the tables a prediction is judged on: its own cells only, with missing runs where the grid has more.

A run of the grid without a record stands in the runs table as a row of which only the arm is known. It can't help a
claim to hold; a known row can still refute the claim, whatever the missing run would have been.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from harness.prereg.cells import COLUMN_OF_SETTING, Cell, describe, differing
from harness.prereg.language import Row, Table, Tables
from harness.prereg.language.schema import plain
from harness.prereg.language.values import Gap
from harness.prereg.predictions import Prediction

ROW_NAMES = ("run_id", "group")


@dataclass(frozen=True)
class Data:
    """All rows of an experiment. grid: the cells that were to be run, None when nobody knows (published facts)."""

    tables: Tables
    missing: tuple[Cell, ...] = ()
    grid: tuple[Cell, ...] | None = None

    def planned(self) -> tuple[Cell, ...]:
        """The grid; where nobody knows it, one cell per row of the run table."""
        if self.grid is not None or "runs" not in self.tables:
            return self.grid or ()
        rows = self.tables["runs"].rows
        named = [{key: row.values.get(column) for key, column in COLUMN_OF_SETTING.items()} for row in rows]
        return tuple(Cell({key: value for key, value in one.items() if value is not None}) for one in named)

    def of(self, prediction: Prediction) -> Tables:
        """The tables cut down to the runs the prediction speaks of."""
        return {name: self._cut(table, prediction) for name, table in self.tables.items()}

    def missing_of(self, prediction: Prediction) -> tuple[Cell, ...]:
        """The missing cells the prediction speaks of."""
        return tuple(cell for cell in self.missing if prediction.covers(cell.columns()) is not False)

    def _cut(self, table: Table, prediction: Prediction) -> Table:
        runs = self.tables.get("runs")
        arms = {row.run_id: row.values for row in runs.rows} if runs else {}
        kept = []
        for row in table.rows:
            # Rows that belong to no run (facts of a whole group) name their group in the claim itself.
            of_a_run = row.run_id is not None or row.missing
            if not of_a_run:
                kept.append(row)
                continue
            covered = prediction.covers({**arms.get(row.run_id, {}), **row.values})
            if covered is not False:
                doubt = () if covered else (Gap(f"it is not known whether {row.name} is in the prediction's cells"),)
                kept.append(dataclasses.replace(row, doubt=doubt))
        return Table(table.name, tuple(kept), table.one_row_per_run)


def build(frames: Mapping[str, pd.DataFrame], grid: Iterable[Cell] | None = None, missing: Sequence[Cell] = ()) -> Data:
    """Tables from DataFrames; `missing` are the cells of the grid without a finished run."""
    cells = None if grid is None else tuple(grid)
    keys = differing(cells or missing)
    absent = [Row(f"the run {describe(c, keys)}", c.columns(), None, missing=True) for c in missing]
    tables = {
        name: Table(name, (*_rows(name, frame), *absent), one_row_per_run=name == "runs")
        for name, frame in frames.items()
    }
    return Data(tables, tuple(missing), cells)


def missing_cells(grid: Iterable[Cell], runs: pd.DataFrame) -> tuple[Cell, ...]:
    """The cells of which the run table has no row, going by the arm columns the table has."""
    rows = [{str(k): plain(v) for k, v in record.items()} for record in runs.to_dict("records")]
    found = []
    for cell in grid:
        columns = {k: v for k, v in cell.columns().items() if k in runs.columns}
        if not any(all(row[k] == v for k, v in columns.items()) for row in rows):
            found.append(cell)
    return tuple(found)


def _rows(table: str, frame: pd.DataFrame) -> list[Row]:
    names = [column for column in ROW_NAMES if column in frame.columns]
    rows = []
    for number, record in enumerate(frame.to_dict("records")):
        values = {str(column): plain(value) for column, value in record.items()}
        run_id = values.get("run_id")
        label = next((str(values[n]) for n in names if values[n] is not None), table)
        if table != "runs":
            label = f"{label}, row {number + 1} of {table}"
        rows.append(Row(label, values, None if run_id is None else str(run_id)))
    return rows
