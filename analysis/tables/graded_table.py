"""tests: one row per test and set of grading.json."""

from __future__ import annotations

import pandas as pd

from analysis.tables.columns import TEST
from analysis.tables.frame import frame
from analysis.tables.records import Source, all_problems, load
from harness.record.grades import SETS


def tests(source: Source) -> pd.DataFrame:
    """The test table; runs that were not graded have no rows."""
    records = load(source)
    rows = [
        record.arm | {"set": name, "test": test, "state": state, "passed": state == "passed"}
        for record in records.runs
        for name in SETS
        for test, state in (((record.grading or {}).get(name) or {}).get("tests") or {}).items()
    ]
    return frame(rows, TEST, all_problems(records))


tests.__test__ = False  # type: ignore[attr-defined]  # pytest must not take it for a test
