"""What the runs of each arm add up to, for reports and notebooks: counts with intervals, medians with ranges.

Every function takes the run table of one kind and gives one row per arm in the order of the arms' names, numbers within
them by size. A share is of the runs whose fact is known; n stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.stats import Interval, median_of, share_of


def arm_names(runs: pd.DataFrame) -> list[str]:
    """The arms in reading order: 4K before 8K before 32K."""
    return sorted(runs["arm"].dropna().unique(), key=natural_order)


def natural_order(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort key that reads the numbers in a name as numbers."""
    return tuple((p.isdigit(), int(p) if p.isdigit() else 0, p) for p in re.split(r"(\d+)", name))


@dataclass(frozen=True)
class Spread:
    """The median of a number with its interval (None for few runs) and its range; n runs that know it."""

    median: Interval
    least: float | None
    most: float | None


@dataclass(frozen=True)
class ArmSummary:
    """The first screen's line of one arm. n: runs. The shares' n are the runs whose fact is known."""

    arm: str
    n: int
    solved: Interval
    false_completion: Interval
    evaluated: Spread


def spread_of(values: pd.Series) -> Spread:
    known = [float(v) for v in values.dropna()]
    return Spread(median_of(known), min(known, default=None), max(known, default=None))


def summaries(runs: pd.DataFrame) -> list[ArmSummary]:
    """Three numbers per arm: solved, false completions (of all runs), evaluated prompt tokens per run."""
    found = []
    for arm in arm_names(runs):
        rows = runs[runs["arm"] == arm]
        found.append(
            ArmSummary(
                arm,
                len(rows),
                share_of(rows["solved"]),
                share_of(rows["false_completion"]),
                spread_of(rows["evaluated_tokens"]),
            )
        )
    return found


def by_arm(runs: pd.DataFrame, columns: Sequence[str], how: str = "sum") -> pd.DataFrame:
    """One row per arm: n, and per column its sum, median, or number of trues over the runs that know it; null of nothing.

    how: `sum`, `median` or `count` (trues).
    """
    rows = []
    for arm in arm_names(runs):
        chosen = runs[runs["arm"] == arm]
        row: dict[str, object] = {"arm": arm, "n": len(chosen)}
        for column in columns:
            known = chosen[column].dropna()
            row[column] = pd.NA if known.empty else known.median() if how == "median" else known.sum()
        rows.append(row)
    return pd.DataFrame(rows, columns=["arm", "n", *columns]).convert_dtypes()


def endings(runs: pd.DataFrame) -> pd.DataFrame:
    """How the runs of each arm ended: one column per ending that occurs, counts."""
    return _counts(runs, "ended_how")


def _counts(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    known = runs.assign(**{column: runs[column].fillna("not known")})
    table = pd.crosstab(known["arm"], known[column]).reindex(arm_names(runs)).fillna(0).astype(int)
    table.insert(0, "n", [int((runs["arm"] == a).sum()) for a in table.index])
    return table.rename_axis(columns=None).reset_index()
