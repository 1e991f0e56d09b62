"""Rows of plain values -> a DataFrame with exactly the documented columns in pandas' nullable types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from analysis.tables.columns import Column

LARGEST = 2**63 - 1


class TableError(ValueError):
    """A value that does not fit its column; the message names the column and the value."""


def frame(rows: Iterable[dict[str, Any]], columns: dict[str, Column], problems: Sequence[str] = ()) -> pd.DataFrame:
    """Columns that a row lacks are null; keys that are no column are left out. problems go to `attrs["problems"]`."""
    listed = list(rows)
    data = {name: _array([row.get(name) for row in listed], name, column) for name, column in columns.items()}
    table = pd.DataFrame(data)
    table.attrs["problems"] = list(problems)
    return table


def _array(values: list[Any], name: str, column: Column) -> Any:
    checked = [_fitting(v, name, column.dtype) for v in values]
    return pd.array(checked, dtype=column.dtype)


def _fitting(value: Any, name: str, dtype: str) -> Any:
    if value is None:
        return pd.NA
    if dtype == "boolean":
        fits = isinstance(value, bool)
    elif dtype == "Int64":
        fits = isinstance(value, int) and not isinstance(value, bool) and -LARGEST - 1 <= value <= LARGEST
    elif dtype == "Float64":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    else:
        fits = isinstance(value, str)
    if not fits:
        raise TableError(f"column {name}: {_short(value)} is no {dtype}")
    return value


def _short(value: Any) -> str:
    shown = (
        repr(value)
        if not isinstance(value, int) or -LARGEST - 1 <= value <= LARGEST
        else "a number of more than 64 bits"
    )
    return shown if len(shown) <= 80 else f"{shown[:77]}…"
