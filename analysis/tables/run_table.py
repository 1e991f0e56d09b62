"""runs: one row per finished run, read from result.json; `check` derives every row again from the record."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.tables.columns import REPEATED, RUN
from analysis.tables.frame import frame
from analysis.tables.records import Record, Records, Source, all_problems, load
from harness.record.summary import summarise


def runs(source: Source, *, check: bool = False) -> pd.DataFrame:
    """The run table. check: also derive each row anew; what differs stands in `attrs["differences"]`, one dict a value."""
    records = load(source, need_events=check)
    table = frame((r.row for r in records.runs), RUN, all_problems(records))
    if check:
        table.attrs["differences"] = differences(records)
    return table


def differences(records: Records) -> list[dict[str, Any]]:
    """Where result.json says something else than the record: {run_id, column, stored, derived}."""
    return [row for record in records.runs for row in _differences(record)]


def _differences(record: Record) -> list[dict[str, Any]]:
    derived = summarise(record.manifest, record.events, record.grading)
    found = []
    for column in (c for c in RUN if c not in REPEATED):
        stored, again = record.result.get(column), derived.get(column)
        if stored != again or type(stored) is not type(again):
            found.append({"run_id": record.result.get("run_id"), "column": column, "stored": stored, "derived": again})
    return found
