"""Small-sample statistics: intervals for shares and medians, paired differences by task and seed.

A bare mean is never given. With n = 1 there is no standard error and no interval of a mean or difference: None, not 0.
Paired comparisons use exact methods: McNemar's exact test for yes/no outcomes, a sign-flip permutation test for numbers,
enumerated in full (up to 2**EXACT_PAIRS sign patterns; above that a seeded sample of them, and `exact` says so).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean, median, stdev
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import binom, binomtest, t

LEVEL = 0.95
EXACT_PAIRS = 16
SAMPLES = 20_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval at `level`; low and high are None where there is no interval. n: observations."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    level: float = LEVEL

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None


def share(successes: int, n: int, *, level: float = LEVEL, method: Literal["wilson", "exact"] = "wilson") -> Interval:
    """A share of n with its Wilson or exact (Clopper-Pearson) interval; nothing is known of a share of none."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is no share")
    if n == 0:
        return Interval(None, None, None, 0, level)
    found = binomtest(successes, n).proportion_ci(confidence_level=level, method=method)
    return Interval(successes / n, float(found.low), float(found.high), n, level)


def share_of(values: pd.Series, *, level: float = LEVEL) -> Interval:
    """The share of true values among the known ones."""
    known = values.dropna()
    return share(int(known.sum()), len(known), level=level)


def median_of(values: Sequence[float], *, level: float = LEVEL) -> Interval:
    """The median with its distribution-free interval from order statistics; no interval where n is too small for the level.

    The interval (x[k], x[n-1-k]) covers the median with probability 1 - 2 P(B <= k), B binomial(n, 1/2); the largest k that
    keeps the level is taken. At 95 % that needs n >= 6.
    """
    ordered = sorted(float(v) for v in values)
    n = len(ordered)
    if n == 0:
        return Interval(None, None, None, 0, level)
    k = max((k for k in range(n // 2) if 1 - 2 * binom.cdf(k, n, 0.5) >= level), default=None)
    if k is None:
        return Interval(median(ordered), None, None, n, level)
    return Interval(median(ordered), ordered[k], ordered[n - 1 - k], n, level)


def mean_of(values: Sequence[float], *, level: float = LEVEL) -> Interval:
    """The mean with Student's interval; no interval for n = 1."""
    n = len(values)
    if n == 0:
        return Interval(None, None, None, 0, level)
    error = standard_error(values)
    if error is None:
        return Interval(float(values[0]), None, None, n, level)
    half = float(t.ppf((1 + level) / 2, n - 1)) * error
    centre = mean(float(v) for v in values)
    return Interval(centre, centre - half, centre + half, n, level)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean; None for fewer than two values."""
    return None if len(values) < 2 else stdev(float(v) for v in values) / math.sqrt(len(values))


@dataclass(frozen=True)
class Paired:
    """Differences b - a over pairs of runs that share task and seed.

    mean, median: of the differences. standard_error: None for n = 1. p: two-sided; None without a pair. exact: the test
    enumerated every sign pattern. unpaired: runs of either arm that have no partner.
    """

    a: str
    b: str
    n: int
    mean: float | None
    median: float | None
    standard_error: float | None
    p: float | None
    exact: bool
    differences: tuple[float, ...]
    unpaired: int


@dataclass(frozen=True)
class PairedShare:
    """Yes/no outcomes over pairs: both, only_a, only_b, neither. p: McNemar's exact test, 1 where no pair is discordant."""

    a: str
    b: str
    both: int
    only_a: int
    only_b: int
    neither: int
    p: float | None
    unpaired: int

    @property
    def n(self) -> int:
        return self.both + self.only_a + self.only_b + self.neither


PAIR_BY = ("task", "seed")


def pairs(
    runs: pd.DataFrame, column: str, a: str, b: str, *, arm: str = "arm", by: Sequence[str] = PAIR_BY
) -> tuple[pd.DataFrame, int]:
    """(one row per pair with the columns a and b, how many known runs have no partner).

    Raises:
        ValueError: two runs of one arm share task and seed, so that pairing would be arbitrary.
    """
    known = runs.dropna(subset=[column])
    sides = []
    for name in (a, b):
        side = known[known[arm] == name]
        if side.duplicated(list(by)).any():
            raise ValueError(
                f"arm {name}: several runs with the same {' and '.join(by)}; pairing them would be arbitrary"
            )
        sides.append(side.set_index(list(by))[column])
    joined = pd.concat(sides, axis=1, keys=["a", "b"], join="inner")
    return joined, len(sides[0]) + len(sides[1]) - 2 * len(joined)


def paired_difference(runs: pd.DataFrame, column: str, a: str, b: str, *, arm: str = "arm") -> Paired:
    """Number-valued column, arm b minus arm a, paired by task and seed."""
    joined, unpaired = pairs(runs, column, a, b, arm=arm)
    found = [float(y) - float(x) for x, y in zip(joined["a"], joined["b"], strict=True)]
    p, exact = permutation_p(found)
    return Paired(
        a,
        b,
        len(found),
        mean(found) if found else None,
        median(found) if found else None,
        standard_error(found),
        p,
        exact,
        tuple(found),
        unpaired,
    )


def paired_shares(runs: pd.DataFrame, column: str, a: str, b: str, *, arm: str = "arm") -> PairedShare:
    """Boolean column, arm a against arm b, paired by task and seed."""
    joined, unpaired = pairs(runs, column, a, b, arm=arm)
    cells = [(bool(x), bool(y)) for x, y in zip(joined["a"], joined["b"], strict=True)]
    only_a, only_b = cells.count((True, False)), cells.count((False, True))
    return PairedShare(
        a,
        b,
        cells.count((True, True)),
        only_a,
        only_b,
        cells.count((False, False)),
        mcnemar_p(only_a, only_b) if cells else None,
        unpaired,
    )


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided exact McNemar test on the discordant pairs."""
    n = only_a + only_b
    return 1.0 if n == 0 else float(binomtest(only_a, n, 0.5).pvalue)


def permutation_p(differences: Sequence[float], *, seed: int = 0) -> tuple[float | None, bool]:
    """(two-sided p of the sign-flip permutation test on the mean difference, whether every pattern was enumerated)."""
    n = len(differences)
    if n == 0:
        return None, True
    values = np.abs(np.asarray(differences, dtype=float))
    observed = abs(float(np.sum(differences)))
    slack = 1e-9 * max(1.0, float(values.sum()))
    if n <= EXACT_PAIRS:
        signs = np.array(list(product((1.0, -1.0), repeat=n)))
        return float(np.mean(np.abs(signs @ values) >= observed - slack)), True
    drawn = np.random.default_rng(seed).choice((1.0, -1.0), size=(SAMPLES, n))
    hits = int(np.sum(np.abs(drawn @ values) >= observed - slack))
    return (hits + 1) / (SAMPLES + 1), False


def ratio_of_sums(joined: pd.DataFrame) -> float | None:
    """Sum of b over sum of a; None where the sum of a is 0 or there is no pair."""
    bottom = float(joined["a"].sum()) if len(joined) else 0.0
    return float(joined["b"].sum()) / bottom if bottom else None
