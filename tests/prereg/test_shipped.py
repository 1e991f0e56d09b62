"""Every shipped experiment over own runs: each prediction can hold and can lose, and without its rows it is undetermined."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

from harness.paths import shipped
from harness.prereg.adapters import compose_grid
from harness.prereg.cells import Cell
from harness.prereg.language import parse
from harness.prereg.predictions import Prediction, Predictions, load_predictions
from harness.prereg.refute import Example, find_example
from harness.prereg.registering import check_claims, grid_schema
from harness.prereg.study import Study
from harness.prereg.verdicts import Verdict

from .mutation import flipping_changes, verdict_of, without_rows

ROOT = shipped("experiments").parent
FILES = sorted(shipped("experiments").glob("*/predictions.yaml"))
OWN = {f.parent.name: load_predictions(f) for f in FILES}
EACH = [(name, p.id) for name, predictions in OWN.items() if not predictions.data for p in predictions.predictions]


@cache
def cells_of(name: str) -> tuple[Cell, ...]:
    return compose_grid(Study(ROOT, name), ROOT / "runs").cells


def frames_of(example: Example) -> dict[str, pd.DataFrame]:
    return {
        name: pd.DataFrame([row.values for row in table.rows], dtype=object) for name, table in example.tables.items()
    }


@pytest.mark.parametrize("name", OWN)
def test_the_file_is_named_after_its_folder(name: str) -> None:
    assert OWN[name].experiment == name


@pytest.mark.parametrize("name", [name for name, predictions in OWN.items() if not predictions.data])
def test_the_claims_fit_the_grid_and_can_lose(name: str) -> None:
    assert cells_of(name)
    assert Study(ROOT, name).plan.is_file()
    for check in check_claims(OWN[name], cells_of(name)):
        assert check.refuted is not None, f"{name} {check.prediction}: nothing refutes {check.claim}"
        assert check.can_hold, f"{name} {check.prediction}: nothing makes {check.claim} hold"


@pytest.mark.parametrize(("name", "prediction_id"), EACH)
def test_changing_what_a_prediction_reads_changes_its_verdict(name: str, prediction_id: str) -> None:
    predictions = OWN[name]
    prediction: Prediction = next(p for p in predictions.predictions if p.id == prediction_id)
    cells = cells_of(name)
    schema = grid_schema(predictions, cells)
    example = find_example(parse(prediction.parts[0].claim, schema), schema, prediction, cells, wanted=True)
    assert example is not None
    frames = frames_of(example)
    only = Predictions(name, (prediction,))
    before = verdict_of(prediction, None, frames)
    decided = (after for _, after in flipping_changes(prediction, only, frames) if after is not Verdict.UNDETERMINED)
    after = next(decided, None)
    assert after is not None, f"{name} {prediction_id}: no change of what it reads gives another verdict"
    assert after is not before
    assert without_rows(prediction, only, frames) is Verdict.UNDETERMINED
