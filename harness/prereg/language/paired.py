"""Two arms compared pair by pair: rows with the same task and seed belong together.

`difference` is the mean of first - second, with Student's t interval; `ratio` is the geometric mean of first / second, with
the t interval of the logarithms. Both are 95 % intervals over pairs, so they assume that the pairs are independent and
their (log) differences roughly normal; one pair has no interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import stdtrit

from harness.prereg.language.rows import Row, Selection
from harness.prereg.language.values import Gap, Number, Reasons, merge, undefined

LEVEL = 0.95
Key = tuple[object, object]


@dataclass(frozen=True)
class Comparison:
    """estimate: known only when every pair is. interval: None without two complete pairs or without spread to judge by."""

    function: str
    estimate: Number
    interval: tuple[float, float] | None
    pairs: Mapping[Key, float | None]
    unpaired: tuple[str, ...]

    def decided_by_interval(self) -> Number:
        """The interval as a number known only within it, so that a comparison holds when all of it fulfils it."""
        if not self.estimate.exact:
            return self.estimate
        if self.interval is None:
            return undefined((Gap(f"{len(self.pairs)} pair has no interval; two or more are needed"),))
        low, high = self.interval
        reason = Gap(f"the {LEVEL:.0%} interval {low:.4g} to {high:.4g} of the {self.function} does not decide it")
        return Number(low, high, (reason,) if low != high else ())

    def facts(self) -> dict[str, object]:
        """JSON values for a finding: estimate, interval, pairs and rows without a partner."""
        return {
            "estimate": self.estimate.low if self.estimate.exact else None,
            "interval": list(self.interval) if self.interval else None,
            "level": LEVEL,
            "pairs": [{"task": task, "seed": seed, self.function: value} for (task, seed), value in self.pairs.items()],
            "unpaired": list(self.unpaired),
        }


def compare_pairs(function: str, first: Selection, second: Selection, values: Mapping[int, Number]) -> Comparison:
    """Pairs the rows of two selections and compares `values` (by id of the row)."""
    because = merge(*(part for s in (first, second) for part in (s.because, s.doubts)))
    left, trouble_left = _by_key(first)
    right, trouble_right = _by_key(second)
    shared = [key for key in left if key in right]
    unpaired = tuple(row.name for key, row in (*left.items(), *right.items()) if key not in left or key not in right)
    trouble = merge(trouble_left, trouble_right)
    if not shared and not because and not trouble:
        trouble = (Gap("no two rows of the selections have the same task and seed"),)
    pairs: dict[Key, float | None] = {}
    for key in shared:
        one, other = values[id(left[key])], values[id(right[key])]
        result, reasons = _pair(function, one, other, f"task {key[0]}, seed {_seed(key[1])}")
        pairs[key] = result
        trouble = merge(trouble, reasons)
    numbers = [value for value in pairs.values() if value is not None]
    if because or trouble or not numbers:
        return Comparison(function, undefined(merge(because, trouble)), None, pairs, unpaired)
    estimate, interval = _summary(function, numbers)
    return Comparison(function, Number(estimate, estimate), interval, pairs, unpaired)


def _by_key(selection: Selection) -> tuple[dict[Key, Row], Reasons]:
    rows: dict[Key, Row] = {}
    for row in selection.certain:
        key = (row.values.get("task"), row.values.get("seed"))
        if None in key:
            return rows, (Gap(f"task or seed of {row.name} is not known, so it has no partner"),)
        if key in rows:
            return rows, (Gap(f"{rows[key].name} and {row.name} have the same task and seed; narrow the selection"),)
        rows[key] = row
    return rows, ()


def _pair(function: str, one: Number, other: Number, where: str) -> tuple[float | None, Reasons]:
    if not one.exact or not other.exact:
        return None, merge(one.because, other.because)
    if function == "difference":
        return one.low - other.low, ()
    if other.low == 0:
        return None, (Gap(f"a division by nothing: the second value is 0 ({where})"),)
    if one.low <= 0 or other.low < 0:
        return None, (Gap(f"ratio needs values above 0, got {one.low:g} and {other.low:g} ({where}); use difference"),)
    return one.low / other.low, ()


def _summary(function: str, numbers: list[float]) -> tuple[float, tuple[float, float] | None]:
    scale = [math.log(n) for n in numbers] if function == "ratio" else numbers
    middle = math.fsum(scale) / len(scale)
    back = math.exp if function == "ratio" else float
    if len(scale) < 2:
        return back(middle), None
    half = float(stdtrit(len(scale) - 1, (1 + LEVEL) / 2)) * statistics.stdev(scale) / math.sqrt(len(scale))
    return back(middle), (back(middle - half), back(middle + half))


def _seed(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
