"""The tables as the evaluation sees them: rows of plain values, each with a name a person can find again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.prereg.language.values import Reasons

Plain = bool | int | float | str | None


def shown_value(value: object) -> str:
    """A value for people: six digits of a number are enough."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Row:
    """One row.

    name: the run id, or another name of the row. missing: a run of the grid of which there is no record. doubt: why it is
    not sure that the row belongs to the cells that are spoken of; empty when it does.
    """

    name: str
    values: Mapping[str, Plain]
    run_id: str | None = None
    missing: bool = False
    doubt: Reasons = ()


@dataclass(frozen=True)
class Table:
    """one_row_per_run: a missing run is one unknown row here; elsewhere it is any number of rows, none included."""

    name: str
    rows: tuple[Row, ...]
    one_row_per_run: bool = False


Tables = Mapping[str, Table]


@dataclass(frozen=True)
class Selection:
    """Rows that were selected for sure, rows that may be (a null in the condition), and why it is not all certain.

    doubts: the nulls that leave `possible` open. because: why nothing, or not everything, is here: an empty selection, a
    missing table, missing runs. is_open: there may be further rows.
    """

    certain: tuple[Row, ...]
    possible: tuple[Row, ...]
    doubts: Reasons
    because: Reasons
    is_open: bool = False
