"""The language against a second evaluation in plain pandas, for random tables and random well-typed claims.

Every strategy makes a pair: the claim's text, and a function that works the same thing out with pandas and shares no code with
the language. With nulls the second evaluation is asked for random completions: what the language decides must hold in each.
"""

from __future__ import annotations

import math
import operator
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.prereg.data import build
from harness.prereg.language import Column, Schema, Type, evaluate, parse

NUMBERS = {"a": Column(Type.NUMBER, low=0, whole=True), "b": Column(Type.NUMBER, low=0, high=9, whole=True),
           "c": Column(Type.NUMBER, whole=True)}  # fmt: skip
FLAGS = ("f", "g")
TEXTS = ("x", "y", "z")
SCHEMA = Schema(
    {"runs": {**NUMBERS, **{f: Column(Type.FLAG) for f in FLAGS}, "s": Column(Type.TEXT), "task": Column(Type.TEXT),
              "seed": Column(Type.NUMBER)}}
)  # fmt: skip
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@dataclass(frozen=True)
class Pair:
    text: str
    work_out: Callable[[pd.DataFrame], Any]


def series(frame: pd.DataFrame, value: Any) -> pd.Series:
    return pd.Series([value] * len(frame), index=frame.index)


numbers = st.one_of(
    st.sampled_from(sorted(NUMBERS)).map(lambda n: Pair(n, lambda d: d[n])),
    st.integers(-3, 9).map(lambda v: Pair(f"({v})", lambda d: series(d, v))),
)
numbers = st.recursive(
    numbers,
    lambda inner: st.tuples(inner, st.sampled_from(sorted(ARITHMETIC)), inner).map(
        lambda t: Pair(
            f"({t[0].text} {t[1]} {t[2].text})", lambda d: ARITHMETIC[t[1]](t[0].work_out(d), t[2].work_out(d))
        )
    ),
    max_leaves=3,
)
simple_flags = st.one_of(
    st.sampled_from(FLAGS).map(lambda n: Pair(n, lambda d: d[n])),
    st.tuples(numbers, st.sampled_from(sorted(COMPARE)), numbers).map(
        lambda t: Pair(f"{t[0].text} {t[1]} {t[2].text}", lambda d: COMPARE[t[1]](t[0].work_out(d), t[2].work_out(d)))
    ),
    st.tuples(st.sampled_from(["==", "!="]), st.sampled_from(TEXTS)).map(
        lambda t: Pair(f's {t[0]} "{t[1]}"', lambda d: COMPARE[t[0]](d["s"], t[1]))
    ),
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=2).map(
        lambda values: Pair(f"s in {values!r}", lambda d: d["s"].isin(values))
    ),
)


def combined(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(
        st.tuples(inner, inner).map(
            lambda t: Pair(f"({t[0].text} and {t[1].text})", lambda d: t[0].work_out(d) & t[1].work_out(d))
        ),
        st.tuples(inner, inner).map(
            lambda t: Pair(f"({t[0].text} or {t[1].text})", lambda d: t[0].work_out(d) | t[1].work_out(d))
        ),
        inner.map(lambda p: Pair(f"(not {p.text})", lambda d: ~p.work_out(d))),
    )


flags = st.recursive(simple_flags, combined, max_leaves=4)


@dataclass(frozen=True)
class Rows:
    text: str
    take: Callable[[pd.DataFrame], pd.DataFrame]


rows = st.one_of(
    st.just(Rows("runs", lambda d: d)),
    st.lists(flags, min_size=1, max_size=2).map(
        lambda conditions: Rows(
            f"runs[{', '.join(c.text for c in conditions)}]",
            lambda d: d[np.logical_and.reduce([c.work_out(d).to_numpy(dtype=bool) for c in conditions])],
        )
    ),
)


def over_rows(name: str, selection: Rows, body: Pair, finish: Callable[[pd.Series], Any]) -> Pair:
    def work_out(frame: pd.DataFrame) -> Any:
        chosen = selection.take(frame)
        return None if chosen.empty else finish(body.work_out(chosen))

    return Pair(f"{name}({selection.text}, {body.text})", work_out)


FLAG_TO_NUMBER = {"count": lambda s: int(s.sum()), "share": lambda s: s.sum() / len(s)}
FLAG_TO_FLAG = {"any": lambda s: bool(s.any()), "all": lambda s: bool(s.all()), "none": lambda s: not s.any()}
NUMBER_TO_NUMBER = {
    "min": lambda s: s.min(),
    "max": lambda s: s.max(),
    "sum": lambda s: s.sum(),
    "median": lambda s: s.median(),
}

aggregates = st.one_of(
    *(st.builds(over_rows, st.just(n), rows, flags, st.just(f)) for n, f in FLAG_TO_NUMBER.items()),
    *(st.builds(over_rows, st.just(n), rows, numbers, st.just(f)) for n, f in NUMBER_TO_NUMBER.items()),
)


def divided(one: Pair, other: Pair) -> Pair:
    def work_out(frame: pd.DataFrame) -> Any:
        a, b = one.work_out(frame), other.work_out(frame)
        return None if a is None or b is None or b == 0 else float(a) / float(b)

    return Pair(f"({one.text} / {other.text})", work_out)


def compared(one: Pair, sign: str, bound: float) -> Pair:
    def work_out(frame: pd.DataFrame) -> Any:
        value = one.work_out(frame)
        return None if value is None else bool(COMPARE[sign](value, bound))

    return Pair(f"{one.text} {sign} {bound}", work_out)


def both(one: Pair, word: str, other: Pair) -> Pair:
    deciding = word == "or"

    def work_out(frame: pd.DataFrame) -> Any:
        values = [one.work_out(frame), other.work_out(frame)]
        return deciding if deciding in values else None if None in values else not deciding

    return Pair(f"({one.text} {word} {other.text})", work_out)


def opposite(one: Pair) -> Pair:
    def work_out(frame: pd.DataFrame) -> Any:
        value = one.work_out(frame)
        return None if value is None else not value

    return Pair(f"(not {one.text})", work_out)


simple_claims = st.one_of(
    *(st.builds(over_rows, st.just(n), rows, flags, st.just(f)) for n, f in FLAG_TO_FLAG.items()),
    st.builds(compared, aggregates, st.sampled_from(sorted(COMPARE)), st.sampled_from([0, 1, 2, 3, 0.5, 7])),
    st.builds(
        compared, st.builds(divided, aggregates, aggregates), st.sampled_from(["<", ">="]), st.sampled_from([0.5, 1, 2])
    ),
)
claims = st.recursive(
    simple_claims,
    lambda inner: st.one_of(st.builds(both, inner, st.sampled_from(["and", "or"]), inner), inner.map(opposite)),
    max_leaves=3,
)

row = st.fixed_dictionaries(
    {"a": st.integers(0, 6), "b": st.integers(0, 9), "c": st.integers(-5, 5), "f": st.booleans(), "g": st.booleans(),
     "s": st.sampled_from(TEXTS)}
)  # fmt: skip
tables = st.lists(row, min_size=1, max_size=6)


def typed(records: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(records)
    return frame.astype({"a": "int64", "b": "int64", "c": "int64", "f": bool, "g": bool, "s": object})


def language(text: str, frame: pd.DataFrame) -> bool | None:
    frame = frame.assign(run_id=[f"r{i}" for i in range(len(frame))])
    return evaluate(parse(text, SCHEMA), build({"runs": frame}).tables).truth.value


@settings(max_examples=200, deadline=None)
@given(claims, tables)
def test_agrees_with_pandas_when_everything_is_known(claim: Pair, records: list[dict[str, Any]]) -> None:
    frame = typed(records)
    assert language(claim.text, frame) == claim.work_out(frame)


@settings(max_examples=200, deadline=None)
@given(claims, tables, st.integers(0, 2**32))
def test_what_is_decided_despite_nulls_holds_however_they_are_filled_in(
    claim: Pair, records: list[dict[str, Any]], seed: int
) -> None:
    chance = random.Random(seed)
    holes = [{k: None if chance.random() < 0.25 else v for k, v in record.items()} for record in records]
    decided = language(claim.text, pd.DataFrame(holes, dtype=object))
    for _ in range(6):
        filled = [{k: chance.choice(FILL[k]) if v is None else v for k, v in record.items()} for record in holes]
        if decided is not None:
            assert claim.work_out(typed(filled)) is decided


FILL = {"a": [0, 1, 5, 900], "b": [0, 4, 9], "c": [-900, -1, 0, 3, 900], "f": [True, False], "g": [True, False],
        "s": [*TEXTS, "other"]}  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["any", "all", "none", "count", "share", "min", "max", "median", "sum"]),
    tables,
    st.integers(0, 2**32),
)
def test_bounds_are_tight_for_one_function_of_one_column(name: str, records: list[dict[str, Any]], seed: int) -> None:
    """What the language leaves open can really come out either way: both outcomes are reached by some completion."""
    chance = random.Random(seed)
    of_flags = name in ("any", "all", "none", "count", "share")
    column, bound = ("f", 0.5 if name == "share" else 1) if of_flags else ("b", 4)
    holes = [{**r, column: None if chance.random() < 0.4 else r[column]} for r in records]
    text = f"{name}(runs, {column})" + ("" if name in ("any", "all", "none") else f" >= {bound}")
    work_out = {**FLAG_TO_FLAG, **FLAG_TO_NUMBER, **NUMBER_TO_NUMBER}[name]
    outcomes = set()
    for extreme in [False, True] if of_flags else [0, 9]:
        filled = typed([{**r, column: extreme if r[column] is None else r[column]} for r in holes])
        value = work_out(filled[column])
        outcomes.add(bool(value if name in ("any", "all", "none") else value >= bound))
    decided = language(text, pd.DataFrame(holes, dtype=object))
    assert decided == (outcomes.pop() if len(outcomes) == 1 else None)


paired_rows = st.lists(
    st.tuples(st.sampled_from(["x", "y"]), st.sampled_from(["t1", "t2"]), st.integers(0, 3), st.integers(1, 40)),
    min_size=2, max_size=12, unique_by=lambda r: r[:3],
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(paired_rows, st.sampled_from(["ratio", "difference"]))
def test_paired_comparisons_agree_with_a_merge_in_pandas(records: list[tuple[str, str, int, int]], name: str) -> None:
    frame = pd.DataFrame(records, columns=["s", "task", "seed", "a"]).assign(run_id=lambda d: d.index.map(str))
    claim = parse(f'{name}(runs[s == "x"], runs[s == "y"], a) < 1', SCHEMA)
    result = evaluate(claim, build({"runs": frame}).tables)
    merged = frame[frame.s == "x"].merge(frame[frame.s == "y"], on=["task", "seed"])
    if merged.empty:
        assert result.truth.value is None
        return
    values = np.log(merged.a_x / merged.a_y) if name == "ratio" else merged.a_x - merged.a_y
    back = math.exp if name == "ratio" else float
    (finding,) = result.findings
    assert math.isclose(finding.value, back(values.mean()), rel_tol=1e-9, abs_tol=1e-9)
    assert len(finding.facts["pairs"]) == len(merged)
    if len(merged) < 2:
        assert finding.facts["interval"] is None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    if values.std() > 1e-12:
        assert np.allclose(finding.facts["interval"], [back(interval.low), back(interval.high)])
