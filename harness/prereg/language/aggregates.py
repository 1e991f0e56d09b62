"""The functions over many rows, with bounds where nulls leave the rows or their values open.

`certain` are the values of rows that belong for sure, `possible` those of rows that may belong. Every bound is the least
or greatest result over all ways to fill in what is not known; a selection that may be empty decides nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from harness.prereg.language.rows import Selection
from harness.prereg.language.values import (
    ANYTHING,
    Number,
    Reasons,
    Truth,
    Value,
    conjunction,
    merge,
    negate,
    undefined,
)


def apply(function: str, selection: Selection, certain: Sequence[Value], possible: Sequence[Value]) -> Value:
    """The result of one aggregate function (a key of AGGREGATES)."""
    because = merge(selection.because, selection.doubts, *(value.because for value in (*certain, *possible)))
    if function in ("any", "all", "none"):
        return _quantify(function, selection, _truths(certain), _truths(possible))
    if not certain or any(isinstance(value, Number) and value.undefined for value in (*certain, *possible)):
        return undefined(because)
    if function in ("count", "share"):
        low, high = _COUNTS[function](_truths(certain), _truths(possible), selection.is_open)
    else:
        low, high = _BOUNDS[function](_numbers(certain), _numbers(possible), selection.is_open)
    return Number(low, high, because if low != high else ())


def _quantify(function: str, selection: Selection, certain: list[Truth], possible: list[Truth]) -> Truth:
    if function == "none":
        return negate(_quantify("any", selection, certain, possible))
    if function == "any":
        negated = _quantify("all", selection, [negate(t) for t in certain], [negate(t) for t in possible])
        return negate(negated)
    verdict = conjunction(certain)
    if verdict.value is False:
        return verdict
    doubtful = [truth for truth in possible if truth.value is not True]
    if not certain or doubtful or selection.is_open:
        reasons: list[Reasons] = [verdict.because, selection.because]
        if doubtful or not certain:
            reasons += [selection.doubts, *(truth.because for truth in doubtful)]
        return Truth(None, merge(*reasons))
    return verdict


def _count(certain: list[Truth], possible: list[Truth], is_open: bool) -> tuple[float, float]:
    low = sum(truth.value is True for truth in certain)
    high = sum(truth.value is not False for truth in (*certain, *possible))
    return float(low), math.inf if is_open else float(high)


def _share(certain: list[Truth], possible: list[Truth], is_open: bool) -> tuple[float, float]:
    if is_open:
        return 0.0, 1.0
    size = len(certain)
    true = sum(truth.value is True for truth in certain)
    maybe = sum(truth.value is None for truth in certain)
    may_be_false = sum(truth.value is not True for truth in possible)
    may_be_true = sum(truth.value is not False for truth in possible)
    return true / (size + may_be_false), (true + maybe + may_be_true) / (size + may_be_true)


def _min(certain: list[Number], possible: list[Number], is_open: bool) -> tuple[float, float]:
    low = min(number.low for number in (*certain, *possible))
    return -math.inf if is_open else low, min(number.high for number in certain)


def _max(certain: list[Number], possible: list[Number], is_open: bool) -> tuple[float, float]:
    high = max(number.high for number in (*certain, *possible))
    return max(number.low for number in certain), math.inf if is_open else high


def _median(certain: list[Number], possible: list[Number], is_open: bool) -> tuple[float, float]:
    if is_open:
        return ANYTHING
    lows = sorted(number.low for number in possible)
    highs = sorted((number.high for number in possible), reverse=True)
    # Of all ways to take k of the possible rows the k smallest give the smallest median.
    low = min(_or(statistics.median([n.low for n in certain] + lows[:k]), -math.inf) for k in range(len(lows) + 1))
    high = max(_or(statistics.median([n.high for n in certain] + highs[:k]), math.inf) for k in range(len(highs) + 1))
    return low, high


def _sum(certain: list[Number], possible: list[Number], is_open: bool) -> tuple[float, float]:
    if is_open:
        return ANYTHING
    low = _total([n.low for n in certain] + [min(0.0, n.low) for n in possible], -math.inf)
    high = _total([n.high for n in certain] + [max(0.0, n.high) for n in possible], math.inf)
    return low, high


def _total(values: list[float], otherwise: float) -> float:
    try:
        return math.fsum(values)
    except (ValueError, OverflowError):  # bounds without limit on both sides, or beyond the largest float
        return otherwise


def _or(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def _truths(values: Sequence[Value]) -> list[Truth]:
    return [value for value in values if isinstance(value, Truth)]


def _numbers(values: Sequence[Value]) -> list[Number]:
    return [value for value in values if isinstance(value, Number)]


_COUNTS: dict[str, Callable[[list[Truth], list[Truth], bool], tuple[float, float]]] = {"count": _count, "share": _share}
_BOUNDS: dict[str, Callable[[list[Number], list[Number], bool], tuple[float, float]]] = {
    "min": _min,
    "max": _max,
    "median": _median,
    "sum": _sum,
}
