"""Run folders -> DataFrames with documented columns: runs, requests, clears, commands, tests.

Every function takes a path to run folders or records already read by `load`, and gives pandas' nullable types, so that null
stays null. Damaged folders are left out of all tables alike; `table.attrs["problems"]` names them, one line each.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from analysis.tables.clear_table import clears
from analysis.tables.columns import ARM, COLUMNS, TABLES, Column
from analysis.tables.command_table import commands
from analysis.tables.frame import TableError
from analysis.tables.graded_table import tests
from analysis.tables.join import cross_check, join, line, words
from analysis.tables.records import Record, Records, Source, load
from analysis.tables.request_table import requests
from analysis.tables.run_table import differences, runs

__all__ = [
    "ARM",
    "COLUMNS",
    "TABLES",
    "Column",
    "Record",
    "Records",
    "Source",
    "TableError",
    "all_tables",
    "clears",
    "commands",
    "cross_check",
    "differences",
    "join",
    "line",
    "load",
    "requests",
    "runs",
    "tests",
    "words",
]

MAKERS: dict[str, Callable[[Source], pd.DataFrame]] = {
    "runs": runs,
    "requests": requests,
    "clears": clears,
    "commands": commands,
    "tests": tests,
}


def all_tables(source: Source) -> dict[str, pd.DataFrame]:
    """All five tables by name."""
    records = load(source)
    return {name: make(records) for name, make in MAKERS.items()}
