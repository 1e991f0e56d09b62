"""Which tables and columns a claim may name, of which type, and in which range their values can lie at all.

The range is used twice: a null in a column stands for any value of the range, and the search for a table that refutes a
claim draws from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pandas as pd


class Type(StrEnum):
    FLAG = "flag"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class Column:
    """One column. low, high: bounds of a number, both possible values. whole: only whole numbers occur.

    values: the closed list of texts that can occur, empty when any text can.
    """

    type: Type
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """The tables by name, each with its columns by name.

    constraints: by table, conditions (in the claim language) that every row of real data fulfils, such as
    `hidden_passed <= hidden_total`; the search for a refuting table keeps to them.
    """

    tables: Mapping[str, Mapping[str, Column]]
    constraints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def with_frames(self, frames: Mapping[str, pd.DataFrame]) -> Schema:
        """This schema plus the tables and columns that only the data have; their types are read off the data."""
        tables = {name: dict(columns) for name, columns in self.tables.items()}
        for name, frame in frames.items():
            known = tables.setdefault(name, {})
            for column in frame.columns:
                if column not in known:
                    known[column] = infer_column(frame[column])
        return Schema(tables, self.constraints)

    def with_values(self, allowed: Mapping[str, Iterable[str]]) -> Schema:
        """This schema with closed lists of texts for the named columns, wherever a table has them."""
        tables = {
            name: {
                column: Column(Type.TEXT, values=tuple(allowed[column]))
                if column in allowed and spec.type is Type.TEXT
                else spec
                for column, spec in columns.items()
            }
            for name, columns in self.tables.items()
        }
        return Schema(tables, self.constraints)


def infer_column(series: pd.Series) -> Column:
    """The column description of data nobody declared: its type; a number without bounds."""
    known = [plain(value) for value in series]
    known = [value for value in known if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return Column(Type.FLAG)
    if known and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return Column(Type.NUMBER)
    return Column(Type.TEXT)


def plain(value: Any) -> bool | float | int | str | None:
    """A cell of a DataFrame as a plain Python value; None for every kind of null and for what is no finite number."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
