"""The page on predictions: its example is a file that can be read, and its bad ones are as bad as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import yaml

from harness.prereg.assumptions import power_plan
from harness.prereg.language import RUN_TABLES, parse
from harness.prereg.predictions import parse_predictions
from harness.prereg.provenance import Provenance
from harness.prereg.refute import find_example
from harness.prereg.verdicts import Verdict, judge

PAGE = (Path(__file__).parents[2] / "docs" / "predictions.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
BAD_ENTRIES = yaml.safe_load("".join(re.findall(r"```yaml bad\n(.*?)```", PAGE, re.DOTALL)))
BAD = parse_predictions(yaml.safe_dump({"experiment": "bad", "predictions": BAD_ENTRIES}), "the page")
RUNS = pd.DataFrame(
    [{"run_id": f"r{n}", "task": "t", "seed": n, "hidden_passed": 0, "hidden_total": 6, "truncated_answers": 0, "solved": False,
      "clears": 1, "cleared_messages": 0, "first_clear_after_cut": True} for n in range(3)]
)  # fmt: skip


def test_the_example_is_a_predictions_file_whose_claims_can_lose() -> None:
    predictions = parse_predictions(EXAMPLE, "the page")
    assert power_plan(predictions.power, RUN_TABLES, "the page").assumptions
    for prediction in predictions.predictions:
        for text in [p.claim for p in prediction.parts] + ([prediction.means] if prediction.means else []):
            assert find_example(parse(text, RUN_TABLES), RUN_TABLES, prediction) is not None, text


def test_the_bad_ones_are_bad_as_said() -> None:
    verdicts = judge(BAD, {"runs": RUNS})
    assert verdicts["bad-1"].verdict is Verdict.HELD_IN_WORDING_ONLY
    assert "nothing could have refuted it" in verdicts["bad-1"].why
    assert verdicts["bad-2"].verdict is Verdict.UNDETERMINED
    assert "selects none of 3 rows" in verdicts["bad-2"].why
    assert verdicts["bad-3"].verdict is Verdict.HELD


def test_the_mends_parse() -> None:
    for claim in re.findall(r"`((?:count|all|share)\(runs[^`]*)`", PAGE):
        assert parse(claim, RUN_TABLES)


def test_every_verdict_and_every_word_is_explained() -> None:
    for word in (*Verdict, *Provenance):
        assert f"`{word}`" in PAGE
