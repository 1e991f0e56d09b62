"""The predictions file: what it may say, and the line that names what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from harness.prereg.predictions import (
    Part,
    Prediction,
    PredictionError,
    Predictions,
    load_predictions,
    parse_predictions,
)
from harness.prereg.study import StudyError, find_study
from harness.prereg.verdicts import Verdict, judge

GOOD: dict[str, Any] = {"id": "a", "wording": "w", "claim": "any(runs, solved)"}


def read(*entries: dict[str, Any], **top: Any) -> Predictions:
    return parse_predictions(yaml.safe_dump({"experiment": "x", "predictions": list(entries), **top}), "file")


def test_reads_every_key() -> None:
    entry = {
        **GOOD,
        "cells": {"agent": ["a", "b"], "n_ctx": 8192},
        "means": "all(runs, solved)",
        "probability": 0.5,
        "reason": "r",
    }
    (prediction,) = read(entry).predictions
    assert prediction.cells == {"agent": ("a", "b"), "n_ctx": (8192,)}
    assert (prediction.means, prediction.probability, prediction.reason) == ("all(runs, solved)", 0.5, "r")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({**GOOD, "id": None}, "prediction 1: id: needed, a text"),
        ({**GOOD, "wording": " "}, "prediction 1 (a): wording: needed, a text"),
        ({**GOOD, "wordng": "w"}, "no such key: wordng; known here: id, wording"),
        ({**GOOD, "parts": []}, "needs either a claim or parts"),
        ({"id": "a", "wording": "w"}, "needs either a claim or parts"),
        ({"id": "a", "wording": "w", "parts": [{"claim": "c"}]}, "parts: needs a list of two or more"),
        ({"id": "a", "wording": "w", "parts": [{"claim": "c"}, {"wording": "x"}]}, "part 2: claim: needed"),
        ({**GOOD, "probability": 1}, "probability: expected a number above 0 and below 1, got 1"),
        ({**GOOD, "probability": True}, "probability: expected a number"),
        ({**GOOD, "cells": ["a"]}, "cells: expected columns with values"),
        ({**GOOD, "cells": {"agent": []}}, "cells: agent: expected a value or a list of values"),
    ],
)
def test_names_the_prediction_and_the_mend(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(PredictionError) as caught:
        read(entry)
    assert said in str(caught.value)
    assert str(caught.value).startswith("file: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "expected keys such as experiment and predictions"),
        ("a: [", "not YAML"),
        ("experiment: x", "needs a list with at least one prediction"),
        ("experiment: x\npredictions: [1]", "prediction 1: expected keys such as id"),
        ("experiment: x\npredictions: []\nextra: 1", "no such key: extra"),
        ("predictions: [{id: a, wording: w, claim: c}]", "experiment: needed"),
    ],
)
def test_a_file_of_another_form_is_one_line(text: str, said: str) -> None:
    with pytest.raises(PredictionError) as caught:
        parse_predictions(text, "file")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ids_are_unique_and_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="a: this id is used twice"):
        read(GOOD, GOOD)
    with pytest.raises(PredictionError, match=r"nothing\.yaml: can't be read"):
        load_predictions(tmp_path / "nothing.yaml")


def test_an_experiment_is_found_in_the_study_first_then_among_the_shipped_ones(tmp_path: Path) -> None:
    assert find_study("published", tmp_path).predictions.is_file()
    own = tmp_path / "experiments" / "published"
    own.mkdir(parents=True)
    (own / "predictions.yaml").write_text("experiment: published\n", encoding="utf-8")
    assert find_study("published", tmp_path).folder == own
    with pytest.raises(StudyError, match=r"experiments with predictions here: .*published"):
        find_study("nope", tmp_path)
    for name in ("", "../x", ".git"):
        with pytest.raises(StudyError, match="not the name of an experiment"):
            find_study(name, tmp_path)


RUNS = pd.DataFrame({"run_id": ["a", "b"], "solved": [True, None], "prompts": [3, 9]}, dtype=object)


@pytest.mark.parametrize(
    ("claims", "means", "expected"),
    [
        (["any(runs, solved)"], None, Verdict.HELD),
        (["none(runs, solved)"], None, Verdict.FAILED),
        (["all(runs, solved)"], None, Verdict.UNDETERMINED),
        (["any(runs, solved)"], "all(runs, prompts < 5)", Verdict.HELD_IN_WORDING_ONLY),
        (["any(runs, solved)"], "all(runs, prompts < 10)", Verdict.HELD),
        (["any(runs, solved)"], "all(runs, solved)", Verdict.UNDETERMINED),
        (["none(runs, solved)"], "all(runs, prompts < 5)", Verdict.FAILED),
        (["any(runs, solved)", "none(runs, solved)"], None, Verdict.HALF),
        (["any(runs, solved)", "all(runs, prompts > 2)"], None, Verdict.HELD),
        (["none(runs, solved)", "all(runs, prompts > 5)"], None, Verdict.FAILED),
        (["any(runs, solved)", "all(runs, solved)"], None, Verdict.UNDETERMINED),
        (["none(runs, solved)", "all(runs, solved)"], None, Verdict.UNDETERMINED),
        (["any(runs, solved)", "none(runs, solved)", "all(runs, solved)"], None, Verdict.HALF),
        (["any(runs, solvd)"], None, Verdict.UNDETERMINED),
        (["all(runs, prompts >= 0)"], None, Verdict.HELD_IN_WORDING_ONLY),
    ],
)
def test_verdicts(claims: list[str], means: str | None, expected: Verdict) -> None:
    prediction = Prediction("p", "w", tuple(Part(c) for c in claims), means=means)
    judged = judge(Predictions("x", (prediction,)), {"runs": RUNS})["p"]
    assert judged.verdict is expected
    assert judged.why
    assert judged.runs == (() if claims == ["any(runs, solvd)"] else ("a", "b"))


def test_a_claim_that_does_not_fit_the_tables_says_so() -> None:
    prediction = Prediction("p", "w", (Part("any(runs, solvd)"),))
    why = judge(Predictions("x", (prediction,)), {"runs": RUNS})["p"].why
    assert "can't be judged: column 11: runs has no column 'solvd'" in why


def test_columns_only_the_data_have_can_be_used() -> None:
    prediction = Prediction("p", "w", (Part('count(runs, mood == "good") == 1 and any(scores, points > 2)'),))
    tables = {"runs": RUNS.assign(mood=["good", None]), "scores": pd.DataFrame({"points": [1, 3]})}
    judged = judge(Predictions("x", (prediction,)), tables)["p"]
    assert judged.verdict is Verdict.UNDETERMINED
    assert "mood of b is not known" in judged.why
    tables["runs"]["mood"] = ["good", "bad"]
    assert judge(Predictions("x", (prediction,)), tables)["p"].verdict is Verdict.HELD


def test_a_claim_is_refuted_with_as_many_runs_as_there_are() -> None:
    prediction = Prediction("p", "w", (Part("count(runs, solved) < 5"),))
    one_arm = pd.DataFrame([{"run_id": str(n), "agent": "a", "seed": n, "solved": False} for n in range(6)])
    assert judge(Predictions("x", (prediction,)), {"runs": one_arm})["p"].verdict is Verdict.HELD
    assert judge(Predictions("x", (prediction,)), {"runs": one_arm[:4]})["p"].verdict is Verdict.HELD_IN_WORDING_ONLY
