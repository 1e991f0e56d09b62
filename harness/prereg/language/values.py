"""What an expression comes to when some cells are null: a truth of three values, a number known within bounds, a text.

A null stands for any value its column can have. So `any` is decided by one known true whatever the nulls are, and
`sum >= 1` by one known 1 in a column that can't be negative. Whatever is not decided carries the reasons (`because`):
the cells that are null, or a gap such as an empty selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Null:
    """A cell that is not known."""

    table: str
    row: str
    column: str

    def __str__(self) -> str:
        return f"{self.column} of {self.row} is not known"


@dataclass(frozen=True)
class Gap:
    """A reason that is not one cell: nothing selected, a division by nothing, a missing table."""

    text: str

    def __str__(self) -> str:
        return self.text


Reasons = tuple[Null | Gap, ...]


@dataclass(frozen=True)
class Truth:
    value: bool | None
    because: Reasons = ()


@dataclass(frozen=True)
class Number:
    """A number known to lie from low to high, both included; exact when they are the same.

    undefined: there may be no such number at all (nothing selected, a division by nothing); then no comparison decides.
    """

    low: float
    high: float
    because: Reasons = ()
    undefined: bool = False

    @property
    def exact(self) -> bool:
        return self.low == self.high and not self.undefined


@dataclass(frozen=True)
class Text:
    value: str | None
    because: Reasons = ()


Value = Truth | Number | Text
ANYTHING = (-math.inf, math.inf)


def undefined(because: Reasons) -> Number:
    """A number of which it is not even sure that there is one."""
    return Number(*ANYTHING, because, undefined=True)


def merge(*reasons: Reasons) -> Reasons:
    """All reasons, each once, in the order of first mention."""
    return tuple(dict.fromkeys(reason for group in reasons for reason in group))


def exactly(value: float) -> Number:
    return Number(value, value)


def negate(truth: Truth) -> Truth:
    return Truth(None if truth.value is None else not truth.value, truth.because)


def conjunction(truths: Iterable[Truth]) -> Truth:
    """Kleene's and: one false decides; otherwise one unknown leaves it open."""
    open_because: list[Reasons] = []
    for truth in truths:
        if truth.value is False:
            return Truth(False)
        if truth.value is None:
            open_because.append(truth.because)
    return Truth(None, merge(*open_because)) if open_because else Truth(True)


def disjunction(truths: Iterable[Truth]) -> Truth:
    """Kleene's or: one true decides."""
    return negate(conjunction(negate(truth) for truth in truths))


def compare(op: str, left: Value, right: Value) -> Truth:
    """One of == != < <= > >= between two values of the same type."""
    if op == "!=":
        return negate(compare("==", left, right))
    if op in (">", ">="):
        return compare({">": "<", ">=": "<="}[op], right, left)
    if isinstance(left, Number) and isinstance(right, Number):
        if left.undefined or right.undefined:
            return Truth(None, merge(left.because, right.because))
        holds = {
            "==": left.exact and right.exact and left.low == right.low,
            "<": left.high < right.low,
            "<=": left.high <= right.low,
        }[op]
        fails = {
            "==": left.high < right.low or right.high < left.low,
            "<": left.low >= right.high,
            "<=": left.low > right.high,
        }[op]
        return _decide(holds, fails, left, right)
    assert not isinstance(left, Number)
    assert not isinstance(right, Number)
    known = left.value is not None and right.value is not None
    return _decide(known and left.value == right.value, known and left.value != right.value, left, right)


def _decide(holds: bool, fails: bool, left: Value, right: Value) -> Truth:
    if holds or fails:
        return Truth(holds)
    return Truth(None, merge(left.because, right.because))


def arithmetic(op: str, left: Number, right: Number) -> Number:
    """One of + - * / within bounds. Division by a number that is, or can be, zero leaves the result open."""
    because = merge(left.because, right.because)
    if left.undefined or right.undefined:
        return undefined(because)
    if op == "/":
        if right.low == right.high == 0:
            return undefined(merge(because, (Gap("a division by nothing (the divisor is 0)"),)))
        if right.low <= 0 <= right.high:
            return undefined(merge(because, (Gap("the divisor may be 0"),)))
    operation: Callable[[float, float], float] = _OPERATIONS[op]
    corners = [operation(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    if any(math.isnan(corner) for corner in corners):
        if because:  # no bound against no bound: open, for the reasons that left them open
            return Number(*ANYTHING, because)
        return undefined(merge(because, (Gap("the numbers are too large to calculate with"),)))
    low, high = min(corners), max(corners)
    return Number(low, high, because if low != high else ())


def _times(a: float, b: float) -> float:
    # A bound of infinity means "no bound": zero times any finite value is zero.
    return 0.0 if a == 0 or b == 0 else float(a) * float(b)


def _divided(a: float, b: float) -> float:
    return 0.0 if math.isinf(b) and math.isfinite(a) else float(a) / float(b)


_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: float(a) + float(b),
    "-": lambda a, b: float(a) - float(b),
    "*": _times,
    "/": _divided,
}
