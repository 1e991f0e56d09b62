"""What is decided although something is not known, and what the reason says when it is not."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.prereg.cells import Cell
from harness.prereg.data import build
from harness.prereg.language import RUN_TABLES, evaluate, parse
from harness.prereg.language.values import ANYTHING, Gap, Number, arithmetic, exactly
from harness.prereg.predictions import Part, Prediction, Predictions
from harness.prereg.reasons import explain
from harness.prereg.verdicts import Verdict, judge


def runs(**columns: list[Any]) -> pd.DataFrame:
    size = len(next(iter(columns.values())))
    return pd.DataFrame({"run_id": [f"r{i + 1}" for i in range(size)], **columns}, dtype=object)


def truth(claim: str, frame: pd.DataFrame) -> tuple[bool | None, str]:
    result = evaluate(parse(claim, RUN_TABLES), build({"runs": frame}).tables)
    return result.truth.value, "; ".join(map(str, result.truth.because))


@pytest.mark.parametrize(
    ("claim", "values", "expected"),
    [
        ("any(runs, solved)", [True, None], True),
        ("any(runs, solved)", [False, None], None),
        ("all(runs, solved)", [False, None], False),
        ("all(runs, solved)", [True, None], None),
        ("none(runs, solved)", [True, None], False),
        ("none(runs, solved)", [None, False], None),
        ("count(runs, solved) >= 2", [True, True, None], True),
        ("count(runs, solved) >= 2", [True, False, None], None),
        ("count(runs, solved) >= 2", [False, False, None], False),
        ("share(runs, solved) > 0.5", [True, True, None], True),
        ("count(runs[solved], solved) <= 2", [True, None], True),
        ("all(runs[solved], solved)", [None, None], None),
        ("all(runs[solved], solved)", [False, False], None),
        ("all(runs, known(solved))", [True, None], False),
        ("any(runs, solved) or count(runs, not solved) >= 0", [None], True),
    ],
)
def test_one_known_value_decides_where_it_is_enough(
    claim: str, values: list[bool | None], expected: bool | None
) -> None:
    assert truth(claim, runs(solved=values))[0] is expected


@pytest.mark.parametrize(
    ("claim", "values", "expected"),
    [
        ("sum(runs, prompts) >= 1", [1, None], True),
        ("sum(runs, prompts) <= 9", [1, None], None),
        ("max(runs, prompts) >= 5", [5, None], True),
        ("max(runs, prompts) <= 5", [5, None], None),
        ("max(runs, prompts) <= 5", [6, None], False),
        ("min(runs, prompts) <= 5", [5, None], True),
        ("min(runs, prompts) >= 0", [5, None], True),
        ("median(runs, prompts) >= 4", [4, 5, 9, None], True),
        ("median(runs, prompts) >= 5", [4, 5, None], None),
        ("sum(runs, prompts) / sum(runs, bash_commands) < 1", [0, 0], None),
        ("0 * (sum(runs, prompts) / 0) == 0", [1], None),
        ("median(runs[prompts > 100], prompts) >= 0", [1, 2], None),
        ("share(runs[prompts > 100], prompts > 1) != 7", [1, None], None),
    ],
)
def test_a_null_stands_for_any_value_of_its_column(claim: str, values: list[int | None], expected: bool | None) -> None:
    frame = runs(prompts=values, bash_commands=[0] * len(values))
    assert truth(claim, frame)[0] is expected


def test_the_reason_names_the_nulls_the_emptiness_and_the_division() -> None:
    assert truth("all(runs, prompts < 3)", runs(prompts=[1, None]))[1] == "prompts of r2 is not known"
    assert truth("all(runs[prompts > 5], solved)", runs(prompts=[1, 2], solved=[True, True]))[1] == (
        "runs[prompts > 5] selects none of 2 rows"
    )
    assert "division by nothing" in truth("1 / sum(runs, prompts) > 1", runs(prompts=[0]))[1]
    assert truth("all(runs, solved)", runs(prompts=[1]))[1] == "the runs table has no column solved"
    assert truth("all(requests, cut)", runs(prompts=[1]))[1] == "there is no requests table"
    assert truth("all(runs, prompts < 3)", runs(prompts=["three"]))[1] == "prompts of r1 is 'three', not a number"


def test_a_reason_names_only_what_left_it_open() -> None:
    frame = runs(prompts=[1, 2], solved=[None, True], steps=[None, 5])
    assert truth("all(runs, solved) and all(runs, prompts < 9)", frame) == (None, "solved of r1 is not known")


def test_columns_that_are_null_in_the_same_rows_are_named_together() -> None:
    claim = "sum(runs, prompts) + sum(runs, seconds) + sum(runs, steps) < 9"
    frame = runs(prompts=[None, 1, None], seconds=[None, 1.0, None], steps=[1, None, 1])
    found = evaluate(parse(claim, RUN_TABLES), build({"runs": frame}).tables).truth
    assert explain(found.because) == "prompts and seconds of r1, r3 are not known; steps of r2 is not known"


def test_the_missing_cells_of_a_grid_are_counted_beside_a_number() -> None:
    one = made(("a", 1, True))
    found, why = verdict("sum(runs, steps) < 9", one.assign(steps=3))
    assert found is Verdict.UNDETERMINED
    assert why.startswith("steps of the run agent=")
    assert "sum(runs, steps) = at least 3 (r1: steps=3; nothing is known of 3 rows)" in why


def paired(*rows: tuple[str, int, float | None]) -> pd.DataFrame:
    agents, seeds, seconds = zip(*rows, strict=True)
    return runs(agent=list(agents), task=["t"] * len(rows), seed=list(seeds), seconds=list(seconds))


RATIO = 'ratio(runs[agent == "a"], runs[agent == "b"], seconds)'


def test_pairs_need_both_values_and_one_row_each() -> None:
    assert truth(f"{RATIO} < 1", paired(("a", 1, 2.0), ("b", 1, 4.0))) == (True, "")
    assert truth(f"{RATIO} < 1", paired(("a", 1, 2.0), ("b", 1, None)))[1] == "seconds of r2 is not known"
    assert "same task and seed" in truth(f"{RATIO} < 1", paired(("a", 1, 2.0), ("b", 2, 4.0)))[1]
    assert "narrow the selection" in truth(f"{RATIO} < 1", paired(("a", 1, 2.0), ("a", 1, 3.0), ("b", 1, 4.0)))[1]
    assert "division by nothing" in truth(f"{RATIO} < 1", paired(("a", 1, 2.0), ("b", 1, 0.0)))[1]
    assert "use difference" in truth(f"{RATIO} < 1", paired(("a", 1, 0.0), ("b", 1, 2.0)))[1]


def test_the_interval_decides_only_when_all_of_it_does() -> None:
    claim = RATIO.replace("seconds)", 'seconds, decide="interval")')
    clear = paired(*((arm, s, v + s / 9) for s in range(4) for arm, v in (("a", 2.0), ("b", 8.0))))
    assert truth(f"{claim} < 1", clear)[0] is True
    assert truth(f"{claim} > 1", clear)[0] is False
    mixed = paired(("a", 1, 2.0), ("b", 1, 4.0), ("a", 2, 9.0), ("b", 2, 3.0), ("a", 3, 1.0), ("b", 3, 3.0))
    value, why = truth(f"{claim} < 1", mixed)
    assert value is None
    assert "95% interval" in why
    assert truth(f"{RATIO} < 1", mixed)[0] is True
    assert "one pair" not in why
    assert "1 pair has no interval" in truth(f"{claim} < 1", paired(("a", 1, 2.0), ("b", 1, 4.0)))[1]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.lists(
            st.one_of(st.none(), st.booleans(), st.text(max_size=2), st.integers(), st.floats(), st.just(pd.NA)),
            min_size=4, max_size=4,
        ),
        max_size=4,
    ),
    st.sampled_from([
        "all(runs, solved)", "median(runs[prompts > 1], steps) / sum(runs, prompts) < 1", 'count(runs, agent == "x") > 0',
        "max(runs, steps * prompts - steps) >= 0", 'difference(runs[agent == "x"], runs[solved], prompts) > 0',
    ]),
)  # fmt: skip
def test_no_table_makes_it_fail(rows: list[list[Any]], claim: str) -> None:
    frame = pd.DataFrame(rows, columns=["solved", "prompts", "steps", "agent"], dtype=object).assign(task="t", seed=1)
    predictions = Predictions("x", (Prediction("p", "w", (Part(claim),)),))
    document = judge(predictions, {"runs": frame}, tries=0)["p"].as_json()
    assert json.loads(json.dumps(document, allow_nan=False))["verdict"] in list(Verdict)


GRID = tuple(Cell({"agent.name": agent, "task.name": "t", "seed": seed}) for agent in ("a", "b") for seed in (1, 2))


def made(*cells: tuple[str, int, bool]) -> pd.DataFrame:
    return runs(
        agent=[c[0] for c in cells], task=["t"] * len(cells), seed=[c[1] for c in cells], solved=[c[2] for c in cells]
    )


def verdict(claim: str, frame: pd.DataFrame, **cells: tuple[Any, ...]) -> tuple[Verdict, str]:
    predictions = Predictions("x", (Prediction("p", "w", (Part(claim),), cells),))
    judged = judge(predictions, {"runs": frame, "requests": frame.assign(cut=False)}, grid=GRID)["p"]
    return judged.verdict, judged.why


def test_a_run_left_out_can_refute_nothing_and_help_nothing() -> None:
    three = made(("a", 1, True), ("a", 2, True), ("b", 1, False))
    assert verdict("all(runs, solved)", three, agent=("a",))[0] is Verdict.HELD
    found, why = verdict("none(runs, solved)", three, agent=("b",))
    assert found is Verdict.UNDETERMINED
    assert "solved of the run agent=b seed=2 is not known" in why
    assert verdict("all(runs, solved)", three)[0] is Verdict.FAILED
    assert verdict("count(runs, solved) >= 2", three)[0] is Verdict.HELD
    assert verdict('none(requests[agent == "b"], cut)', three)[0] is Verdict.UNDETERMINED
    assert verdict('none(requests[agent == "a"], cut)', three)[0] is Verdict.HELD


def test_an_unknown_column_of_the_cells_is_undetermined() -> None:
    assert verdict("all(runs, solved)", made(("a", 1, True)), flavour=("x",)) == (
        Verdict.UNDETERMINED, "cells: the run table has no column flavour",
    )  # fmt: skip


def test_a_row_that_may_be_outside_the_cells_decides_nothing_alone() -> None:
    frame = runs(agent=[None, "a"], solved=[True, False])
    predictions = Predictions("x", (Prediction("p", "w", (Part("any(runs, solved)"),), {"agent": ("a",)}),))
    judged = judge(predictions, {"runs": frame})["p"]
    assert judged.verdict is Verdict.UNDETERMINED
    assert "r1 is in the prediction's cells" in judged.why


def test_no_bound_against_no_bound_is_open_for_the_reasons_that_left_it_open():
    """Such numbers are not known; they are not too large."""
    left, right = (Number(*ANYTHING, (Gap(f"{name} is not known"),)) for name in ("this", "that"))
    found = arithmetic("-", left, right)
    assert (found.low, found.high, found.undefined) == (*ANYTHING, False)
    assert [str(reason) for reason in found.because] == ["this is not known", "that is not known"]
    assert "too large" in str(arithmetic("-", exactly(math.inf), exactly(math.inf)).because[0])
