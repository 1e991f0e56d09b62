"""Scores against figures worked out by hand; power against exact probabilities."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from scipy.stats import binom, fisher_exact

from harness.prereg.assumptions import power_plan
from harness.prereg.cells import Cell
from harness.prereg.language import RUN_TABLES
from harness.prereg.power import PowerReport, simulate
from harness.prereg.predictions import Part, Prediction, PredictionError, Predictions
from harness.prereg.score import score
from harness.prereg.separate import best_p, can_separate, p_values, power, runs_needed
from harness.prereg.show import power_lines, score_lines
from harness.prereg.verdicts import Judged, Verdict


def judged(*said: tuple[float | None, Verdict]) -> list[Judged]:
    return [
        Judged(Prediction(f"p{n}", "w", (Part("c"),), probability=p), verdict, "", ())
        for n, (p, verdict) in enumerate(said)
    ]


def test_brier_and_log_scores() -> None:
    scores = score(judged((0.8, Verdict.HELD), (0.9, Verdict.FAILED), (0.6, Verdict.HALF), (0.7, Verdict.UNDETERMINED),
                          (None, Verdict.HELD)))  # fmt: skip
    assert [s.id for s in scores.scored] == ["p0", "p1", "p2"]
    assert scores.brier == pytest.approx((0.04 + 0.81 + 0.36) / 3)
    assert scores.log == pytest.approx(-(math.log(0.8) + math.log(0.1) + math.log(0.4)) / 3)
    assert scores.baselines["always 0.5"] == {"brier": pytest.approx(0.25), "log": pytest.approx(math.log(2))}
    third = scores.baselines["always 0.33 (the share that held)"]
    assert third["brier"] == pytest.approx((1 / 3) * (2 / 3))
    assert third["log"] == pytest.approx(-(math.log(1 / 3) + 2 * math.log(2 / 3)) / 3)
    assert scores.curve is None
    assert "p1: said 0.90, did not hold" in "\n".join(score_lines(scores))
    assert "fewer than 30 predictions" in scores.as_json()["note"]


def test_held_in_wording_only_does_not_count_as_held() -> None:
    assert score(judged((0.9, Verdict.HELD_IN_WORDING_ONLY))).brier == pytest.approx(0.81)
    assert score(judged((0.9, Verdict.HELD))).baselines["always 1 (the share that held)"] == {"brier": 0.0, "log": 0.0}


def test_no_probabilities_no_scores() -> None:
    scores = score(judged((None, Verdict.HELD)))
    assert scores.brier is None
    assert list(score_lines(scores)) == []


def test_thirty_predictions_get_a_curve() -> None:
    said = [((n + 0.5) / 30, Verdict.HELD if n % 3 else Verdict.FAILED) for n in range(30)]
    curve = score(judged(*said)).curve
    assert curve is not None
    assert sum(one["n"] for one in curve) == 30
    assert curve[0] == {"from": 0.0, "to": 0.2, "n": 6, "mean_probability": pytest.approx(0.1), "held": 4}
    assert score(judged(*said[:29])).curve is None


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_p_values_are_those_of_fishers_exact_test(n: int) -> None:
    for i in range(n + 1):
        for j in range(n + 1):
            assert p_values(n)[i, j] == pytest.approx(fisher_exact([[i, n - i], [j, n - j]]).pvalue)
    assert p_values(n)[n, 0] == pytest.approx(best_p(n))


def test_three_against_three_can_not_separate() -> None:
    assert best_p(3) == pytest.approx(0.10)
    assert not can_separate(3)
    assert can_separate(4)
    assert power(3, 0.0, 1.0) == 0.0
    assert power(4, 0.0, 1.0) == 1.0


def test_runs_needed() -> None:
    assert runs_needed(0.0, 1.0) == 4
    assert runs_needed(0.5, 0.5) is None
    assert runs_needed(0.5, 0.52) is None
    needed = runs_needed(0.2, 0.8)
    assert needed is not None
    assert power(needed, 0.2, 0.8) >= 0.8 > power(needed - 1, 0.2, 0.8)


GRID = tuple(
    Cell({"agent.name": agent, "task.name": "cart", "server.n_ctx": 4096, "seed": seed})
    for agent in ("plain", "clearing")
    for seed in (1, 2, 3)
)
PREDICTIONS = Predictions(
    "shot",
    (
        Prediction("two", "w", (Part("count(runs, solved) >= 2"),), {"agent": ("clearing",)}),
        Prediction("cheaper", "w", (Part(
            'ratio(runs[agent == "clearing"], runs[agent == "plain"], evaluated_tokens) < 1'),)),
        Prediction("unknown", "w", (Part("all(runs, prompts < 3)"),)),
    ),
)  # fmt: skip


def plan(*assumptions: dict[str, Any], **keys: Any) -> Any:
    return power_plan({"assumptions": list(assumptions), **keys}, RUN_TABLES, "file")


RATES = {
    "name": "it helps",
    "rates": [
        {"solved": 0.2, "evaluated_tokens": 1000},
        {"where": {"agent": "clearing"}, "solved": 0.7, "evaluated_tokens": 500},
    ],
}


def simulated(**options: Any) -> PowerReport:
    return simulate(PREDICTIONS, GRID, plan(RATES, simulations=600, **options))


def test_claims_hold_as_often_as_exact_probability_says() -> None:
    report = simulated()
    chances = {c.prediction: c for c in report.chances}
    exact = 1 - binom.cdf(1, 3, 0.7)
    assert chances["two"].low <= exact <= chances["two"].high
    assert chances["cheaper"].held == 1.0
    assert chances["unknown"].verdicts == {"undetermined": 600}
    assert "prompts of" in str(chances["unknown"].undetermined_because)
    assert chances["two"].seeds == 3


def test_more_seeds_are_tried_and_the_same_simulation_gives_the_same() -> None:
    report = simulated(seeds=[2, 5])
    two = [(c.seeds, c.held) for c in report.chances if c.prediction == "two"]
    assert [s for s, _ in two] == [2, 5]
    assert two[0][1] < two[1][1]
    assert report == simulated(seeds=[2, 5])


def test_says_how_many_seeds_separate_the_arms_and_that_three_can_not() -> None:
    report = simulated()
    (separation,) = report.separations
    assert (separation.column, separation.first, separation.second) == ("solved", "agent=plain", "agent=clearing")
    assert separation.rates == (0.2, 0.7)
    assert separation.needed == runs_needed(0.2, 0.7)
    text = "\n".join(power_lines(report))
    assert "3 runs against 3 can't separate two arms" in text
    assert "p = 0.10" in text
    assert f"{separation.needed} runs per arm for p < 0.05" in text


def test_from_earlier_runs_whole_runs_of_the_same_arm_are_drawn() -> None:
    rows = [
        {"run_id": f"r{n}", "agent": agent, "task": "cart", "n_ctx": 4096, "seed": n, "solved": agent == "clearing",
         "evaluated_tokens": 500 if agent == "clearing" else 1000, "prompts": 1}
        for n, agent in enumerate(["plain", "clearing", "clearing"])
    ]  # fmt: skip
    earlier = {"runs": pd.DataFrame(rows)}
    report = simulate(PREDICTIONS, GRID, plan(simulations=50), earlier=earlier)
    assert {c.prediction: c.held for c in report.chances} == {"two": 1.0, "cheaper": 1.0, "unknown": 1.0}
    assert {c.assumption for c in report.chances} == {"as in earlier runs"}
    lacking = simulate(PREDICTIONS, GRID, plan(simulations=5), earlier={"runs": pd.DataFrame(rows[1:])})
    cheaper = next(c for c in lacking.chances if c.prediction == "cheaper")
    assert cheaper.verdicts == {"undetermined": 5}
    assert "no earlier run of its arm" in str(cheaper.undetermined_because)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"sims": 3}, "power: no such key: sims"),
        ({"simulations": 0}, "whole numbers above 0, got 0"),
        ({"seeds": ["3"]}, "whole numbers above 0, got '3'"),
        ({"assumptions": {}}, "expected a list"),
        ({"assumptions": [{"rates": []}]}, "assumption 1: expected name and a list of rates"),
        ({"assumptions": [{"name": "a", "rates": [{"solvd": 0.5}]}]}, "the run table has no column 'solvd'"),
        ({"assumptions": [{"name": "a", "rates": [{"where": {"agnt": "x"}}]}]}, "the run table has no column 'agnt'"),
        ({"assumptions": [{"name": "a", "rates": [{"solved": 1.5}]}]}, "expected a probability from 0 to 1, got 1.5"),
        ({"assumptions": [{"name": "a", "rates": [{"prompts": "many"}]}]}, "prompts: expected a number, {mean: m}"),
        ({"assumptions": [{"name": "a", "rates": [{"prompts": {"mean": -1}}]}]}, "prompts: expected a number"),
        ({"assumptions": [{"name": "a", "rates": [{"ended_how": {"share": {}}}]}]}, "ended_how: expected a number"),
    ],
)
def test_a_power_section_that_does_not_fit_is_one_line(section: dict[str, Any], said: str) -> None:
    with pytest.raises(PredictionError) as caught:
        power_plan(section, RUN_TABLES, "file")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_form_of_a_rate_can_be_drawn() -> None:
    rates = {"solved": 0.5, "prompts": {"mean": 3}, "evaluated_tokens": {"median": 1000, "spread": 1.5},
             "ended_how": {"share": {"finished": 3, "step_limit": 1}}, "policy": "guarded", "steps": 7}  # fmt: skip
    claims = "count(runs, known(prompts) and evaluated_tokens > 0 and steps == 7) == 6"
    texts = 'all(runs, ended_how in ["finished", "step_limit"] and policy == "guarded")'
    predictions = Predictions("shot", (Prediction("p", "w", (Part(claims), Part(texts))),))
    report = simulate(predictions, GRID, plan({"name": "a", "rates": [rates]}, simulations=20))
    assert report.chances[0].held == 1.0
