"""The 22 published predictions: each verdict comes from its claim, and every one of them could have come out otherwise."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from harness.paths import shipped
from harness.prereg.checking import Report, check
from harness.prereg.language import PUBLISHED_TABLES
from harness.prereg.language.schema import Type, plain
from harness.prereg.predictions import Part, PredictionError, load_predictions
from harness.prereg.published import published_tables
from harness.prereg.study import Study
from harness.prereg.verdicts import Verdict

from .mutation import flipping_changes, verdict_of, without_rows

STUDY = Study(shipped("experiments").parent, "published")
PREDICTIONS = load_predictions(STUDY.predictions)
FACTS = STUDY.folder / str(PREDICTIONS.data)
# As the articles judge them (copied from the project's shared notes on their predictions).
PUBLISHED = {
    "p2a-1": "failed", "p2a-2": "held", "p2a-3": "held", "p2a-4": "held", "p2a-5": "held",
    "p2b-1": "held", "p2b-2": "held", "p2b-3": "held", "p2b-4": "held", "p2b-5": "held",
    "p3a-1": "failed", "p3a-2": "held_in_wording_only", "p3a-3": "failed", "p3a-4": "held_in_wording_only",
    "p3a-5": "failed", "p3a-6": "undetermined", "p3a-7": "held",
    "p3b-1": "held", "p3b-2": "held", "p3b-3": "held", "p3b-4": "half", "p3b-5": "failed",
}  # fmt: skip
# The deciding numbers, as the articles state them: prediction -> (function, its value).
DECIDING = {
    "p2a-2": ("sum(runs, guard_restores)", 1),
    "p2a-3": ("count(runs, test_file_rewritten_whole)", 2),
    "p2a-4": ('count(runs, ended_how == "finished" and finish_check_passed)', 3),
    "p2b-3": ("sum(runs, outside_path_commands)", 2),
    "p3b-2": ('count(runs, ended_how == "finished" and hidden_passed == hidden_total)', 3),
}
BY_ID = {p.id: p for p in PREDICTIONS.predictions}


@pytest.fixture(scope="module")
def report() -> Report:
    return check(STUDY)


@pytest.fixture(scope="module")
def facts() -> dict[str, pd.DataFrame]:
    return published_tables(FACTS)


def test_all_22_get_the_published_verdict(report: Report) -> None:
    assert {line.judged.prediction.id: str(line.judged.verdict) for line in report.lines} == PUBLISHED
    assert {str(line.standing.word) for line in report.lines} == {"published"}
    assert report.holds


def test_the_json_has_the_agreed_fields(report: Report) -> None:
    document = json.loads(json.dumps(report.as_json()))
    assert document["experiment"] == "published"
    assert [p["id"] for p in document["predictions"]] == list(PUBLISHED)
    for prediction in document["predictions"]:
        assert {"id", "verdict", "provenance", "values"} <= set(prediction)
        assert prediction["values"]


@pytest.mark.parametrize(("prediction_id", "number"), DECIDING.items())
def test_the_deciding_numbers_are_those_of_the_articles(
    report: Report, prediction_id: str, number: tuple[str, int]
) -> None:
    line = next(line for line in report.lines if line.judged.prediction.id == prediction_id)
    assert number in [(v["source"], v["value"]) for v in line.judged.values()]


def test_each_line_names_the_runs_of_its_batch(report: Report) -> None:
    runs = {line.judged.prediction.id: set(line.judged.runs) for line in report.lines}
    assert runs["p2a-1"] == {"P2-1", "P2-2", "P2-3"}
    assert runs["p2b-1"] == {"P2-4", "P2-5", "P2-6"}
    assert runs["p3a-7"] == {"A1", "A2", "A3", "B1", "B2", "B3"}
    assert runs["p3b-3"] == {"B4", "B5", "B6", "C1", "C2", "C3"}


def test_what_the_articles_leave_open_is_named(report: Report) -> None:
    why = {line.judged.prediction.id: line.judged.why for line in report.lines}
    assert "steps of A1, A2, A3 is not known" in why["p3a-1"]
    assert "decided whatever this is: hidden_passed of C1 is not known" in why["p3b-4"]
    assert "post_clear_min_pct of C1-C3" in why["p3b-5"]
    assert why["p3a-6"].startswith("runs[post_clear_requests > 0] selects none of 3 rows")


@pytest.mark.parametrize("prediction_id", PUBLISHED)
def test_changing_the_deciding_number_changes_the_verdict(prediction_id: str, facts: dict[str, pd.DataFrame]) -> None:
    prediction = BY_ID[prediction_id]
    change, after = next(flipping_changes(prediction, PREDICTIONS, facts), (None, None))
    assert change is not None, f"{prediction_id}: no change of what it reads gives another verdict"
    assert after is not verdict_of(prediction, PREDICTIONS.data, facts)


@pytest.mark.parametrize("prediction_id", PUBLISHED)
def test_without_the_deciding_rows_it_is_undetermined(prediction_id: str, facts: dict[str, pd.DataFrame]) -> None:
    assert without_rows(BY_ID[prediction_id], PREDICTIONS, facts) is Verdict.UNDETERMINED


def test_a_prediction_nothing_can_change_would_be_noticed(facts: dict[str, pd.DataFrame]) -> None:
    idle = dataclasses.replace(BY_ID["p2a-1"], parts=(Part("all(runs, prompts >= 0 or prompts < 5)"),))
    assert list(flipping_changes(idle, PREDICTIONS, facts)) == []


def test_a_request_after_a_clear_would_decide_the_undetermined_one(facts: dict[str, pd.DataFrame]) -> None:
    runs = facts["runs"].copy()
    b1 = runs["run_id"] == "B1"
    runs.loc[b1, "post_clear_requests"] = 1
    runs.loc[b1, "post_clear_min_pct"] = 80
    assert verdict_of(BY_ID["p3a-6"], PREDICTIONS.data, {**facts, "runs": runs}) is Verdict.HELD
    runs.loc[b1, "post_clear_min_pct"] = 20
    assert verdict_of(BY_ID["p3a-6"], PREDICTIONS.data, {**facts, "runs": runs}) is Verdict.FAILED


def test_values_in_any_order_stand_alone(facts: dict[str, pd.DataFrame]) -> None:
    """No row holds two facts of one run, so no claim can join what the articles do not join."""
    for record in facts["any_order"].to_dict("records"):
        known = {k for k, v in record.items() if plain(v) is not None} - {"group", "fact"}
        assert known <= {record["fact"]}


def test_the_facts_lie_in_the_declared_types_and_ranges(facts: dict[str, pd.DataFrame]) -> None:
    kinds = {Type.FLAG: bool, Type.NUMBER: (int, float), Type.TEXT: str}
    for table, frame in facts.items():
        for name, column in PUBLISHED_TABLES.tables[table].items():
            for value in (plain(v) for v in frame.get(name, [])):
                if value is None:
                    continue
                assert isinstance(value, kinds[column.type]), (table, name, value)
                if column.type is Type.NUMBER:
                    assert column.low <= value <= column.high, (table, name, value)
                if column.values:
                    assert value in column.values, (table, name, value)


def test_a_facts_file_of_another_form_is_one_line(tmp_path: Path) -> None:
    for text in ("[]", "runs: 3", "a: [", yaml.safe_dump({"runs": [], "groups": [{"id": "x"}]})):
        file = tmp_path / "runs.yaml"
        file.write_text(text)
        with pytest.raises(PredictionError) as caught:
            published_tables(file)
        assert "\n" not in str(caught.value)
        assert "runs.yaml" in str(caught.value)
