"""The statistics against formulas written out independently."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats import (
    mcnemar_p,
    mean_of,
    median_of,
    paired_difference,
    paired_shares,
    permutation_p,
    share,
    standard_error,
)

Z = 1.959963984540054


def wilson(k: int, n: int) -> tuple[float, float]:
    p = k / n
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson(kn: tuple[int, int]) -> None:
    found = share(*kn)
    assert (found.low, found.high) == pytest.approx(wilson(*kn), abs=1e-9)


@given(st.integers(1, 25).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_exact_interval_solves_the_binomial_tails(kn: tuple[int, int]) -> None:
    k, n = kn
    found = share(k, n, method="exact")
    tail = lambda p, js: sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in js)  # noqa: E731
    if k > 0:
        assert tail(found.low, range(k, n + 1)) == pytest.approx(0.025, abs=1e-6)
    if k < n:
        assert tail(found.high, range(k + 1)) == pytest.approx(0.025, abs=1e-6)


def test_a_share_of_nothing_is_not_known() -> None:
    assert share(0, 0).estimate is None
    assert share(0, 0).low is None
    with pytest.raises(ValueError, match="4 of 3"):
        share(4, 3)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=8))
def test_permutation_by_counting(values: list[int]) -> None:
    observed = abs(sum(values))
    patterns = list(product((1, -1), repeat=len(values)))
    hits = sum(abs(sum(s * v for s, v in zip(signs, values, strict=True))) >= observed for signs in patterns)
    p, exact = permutation_p(values)
    assert exact
    assert p == pytest.approx(hits / len(patterns))


def test_three_pairs_can_not_be_below_a_quarter() -> None:
    assert permutation_p([5, 6, 7]) == (0.25, True)


def test_many_pairs_are_sampled_reproducibly_and_say_so() -> None:
    values = [1.0] * 20
    p, exact = permutation_p(values)
    assert not exact
    assert 0 < p < 0.001
    assert permutation_p(values) == (p, exact)


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_by_counting(b: int, c: int) -> None:
    n = b + c
    tail = sum(Fraction(math.comb(n, j), 2**n) for j in range(min(b, c) + 1))
    assert mcnemar_p(b, c) == pytest.approx(float(min(Fraction(1), 2 * tail)))


def test_one_value_has_no_error_and_no_interval() -> None:
    assert standard_error([3.0]) is None
    found = mean_of([3.0])
    assert (found.estimate, found.low, found.high, found.n) == (3.0, None, None, 1)
    middle = median_of([3.0])
    assert (middle.estimate, middle.low, middle.high) == (3.0, None, None)


def test_mean_interval_by_hand() -> None:
    found = mean_of([1.0, 2.0, 3.0])
    half = 4.302652729911275 / math.sqrt(3)  # Student's t, 2 degrees of freedom
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))


def test_median_interval_needs_six_and_covers() -> None:
    assert median_of(range(5)).low is None
    six = median_of([6, 1, 5, 2, 4, 3])
    assert (six.estimate, six.low, six.high) == (3.5, 1.0, 6.0)
    nine = median_of(range(1, 10))
    assert (nine.low, nine.high) == (2.0, 8.0)  # 1 - 2 (1 + 9) / 512 = 0.961


def runs(values: list[tuple[str, int, object]]) -> pd.DataFrame:
    table = pd.DataFrame(values, columns=["arm", "seed", "x"]).convert_dtypes()
    return table.assign(task="cart")


def test_pairs_by_seed_and_task() -> None:
    table = runs([("a", 0, 10), ("a", 1, 20), ("a", 2, 30), ("b", 1, 25), ("b", 0, 11), ("b", 7, 1)])
    found = paired_difference(table, "x", "a", "b")
    assert sorted(found.differences) == [1.0, 5.0]
    assert (found.n, found.mean, found.unpaired, found.p) == (2, 3.0, 2, 0.5)
    assert found.standard_error == pytest.approx(2.0)


def test_one_pair_has_no_standard_error() -> None:
    found = paired_difference(runs([("a", 0, 1), ("b", 0, 4)]), "x", "a", "b")
    assert (found.n, found.mean, found.standard_error, found.p) == (1, 3.0, None, 1.0)


def test_no_pair_is_not_known() -> None:
    found = paired_difference(runs([("a", 0, 1), ("b", 1, 4)]), "x", "a", "b")
    assert (found.n, found.mean, found.p, found.unpaired) == (0, None, None, 2)


def test_null_is_no_observation() -> None:
    found = paired_difference(runs([("a", 0, 1), ("b", 0, None), ("a", 1, 1), ("b", 1, 2)]), "x", "a", "b")
    assert (found.n, found.unpaired) == (1, 1)


def test_two_runs_of_one_seed_are_not_paired_at_will() -> None:
    with pytest.raises(ValueError, match="arm a: several runs"):
        paired_difference(runs([("a", 0, 1), ("a", 0, 2), ("b", 0, 4)]), "x", "a", "b")


def test_paired_shares() -> None:
    cells = [(True, True), (True, False), (False, True), (False, True), (False, False)]
    rows = [(arm, seed, cell[i]) for seed, cell in enumerate(cells) for i, arm in enumerate("ab")]
    found = paired_shares(runs(rows), "x", "a", "b")
    assert (found.both, found.only_a, found.only_b, found.neither, found.n) == (1, 1, 2, 1, 5)
    assert found.p == 1.0
