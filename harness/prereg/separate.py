"""How many runs per arm it takes to tell two arms apart by Fisher's exact test, two-sided."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.stats import binom, hypergeom

ALPHA = 0.05
POWER = 0.8
MOST = 100


def best_p(n: int) -> float:
    """The smallest p that n runs against n runs can give at all: all of one arm, none of the other."""
    return 2 / math.comb(2 * n, n)


def can_separate(n: int) -> bool:
    """Whether any outcome of n against n runs falls below ALPHA; n = 3 gives 0.10 at best."""
    return best_p(n) < ALPHA


@cache
def p_values(n: int) -> np.ndarray:
    """p[i, j]: two-sided p of i of n against j of n (all tables that are no more likely count)."""
    p = np.ones((n + 1, n + 1))
    for total in range(2 * n + 1):
        i = np.arange(max(0, total - n), min(n, total) + 1)
        chance = hypergeom.pmf(i, 2 * n, total, n)
        for number, first in enumerate(i):
            p[first, total - first] = chance[chance <= chance[number] * (1 + 1e-7)].sum()
    return p


def power(n: int, first: float, second: float) -> float:
    """How often n runs of each arm give p < ALPHA when the arms' true rates are `first` and `second`."""
    counts = np.arange(n + 1)
    joint = np.outer(binom.pmf(counts, n, first), binom.pmf(counts, n, second))
    return float(joint[p_values(n) < ALPHA].sum())


def runs_needed(first: float, second: float) -> int | None:
    """The fewest runs per arm with a power of at least POWER; None above MOST, and for equal rates.

    Power does not rise evenly with n (the test is discrete), so n + 1 and n + 2 must reach it as well.
    """
    if first == second:
        return None
    for n in range(2, MOST + 1):
        if all(power(m, first, second) >= POWER for m in (n, n + 1, n + 2)):
            return n
    return None
