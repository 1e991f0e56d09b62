"""Predictions + tables -> verdicts, each with the numbers that decided it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd

from harness.prereg.cells import Cell, describe, differing
from harness.prereg.data import Data, build, missing_cells
from harness.prereg.language import (
    PUBLISHED_TABLES,
    RUN_TABLES,
    ClaimError,
    Finding,
    Schema,
    Tables,
    evaluate,
    parse,
)
from harness.prereg.predictions import Prediction, Predictions
from harness.prereg.reasons import numbers_behind
from harness.prereg.refute import TRIES, find_example


class Verdict(StrEnum):
    HELD = "held"
    FAILED = "failed"
    HALF = "half"
    UNDETERMINED = "undetermined"
    HELD_IN_WORDING_ONLY = "held_in_wording_only"


@dataclass(frozen=True)
class JudgedClaim:
    """One claim of a prediction. role: `claim`, `part` or `means`. holds: None when not decided. why: one line."""

    role: str
    claim: str
    wording: str | None
    holds: bool | None
    why: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A prediction with its verdict. runs: the ids of the runs it looked at. missing: cells of the grid without a run."""

    prediction: Prediction
    verdict: Verdict
    why: str
    claims: tuple[JudgedClaim, ...]
    runs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def values(self) -> list[dict[str, Any]]:
        """The numbers that decided it, as JSON values: one entry per function of its claims.

        JSON knows no infinity: a number that overflowed is null here, and `why` names it.
        """
        return [
            _finite(
                {
                    "role": judged.role,
                    "source": finding.source,
                    "value": finding.value,
                    "low": finding.low,
                    "high": finding.high,
                    "rows": [dict(row) for row in finding.rows],
                    "unknown": [str(reason) for reason in finding.unknown],
                    **finding.facts,
                }
            )
            for judged in self.claims
            for finding in judged.findings
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.prediction.id,
            "verdict": str(self.verdict),
            "why": self.why,
            "wording": self.prediction.wording,
            "cells": {column: list(values) for column, values in self.prediction.cells.items()},
            "claims": [
                {"role": c.role, "claim": c.claim, "wording": c.wording, "holds": c.holds, "why": c.why}
                for c in self.claims
            ],
            "values": self.values(),
            "runs": list(self.runs),
            "missing": list(self.missing),
            "probability": self.prediction.probability,
            "reason": self.prediction.reason,
        }


def _finite(value: Any) -> Any:
    """The value with every number that is infinite or none at all replaced by null."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Verdicts:
    experiment: str
    judged: tuple[Judged, ...]

    def __getitem__(self, prediction_id: str) -> Judged:
        return next(judged for judged in self.judged if judged.prediction.id == prediction_id)


def judge(
    predictions: Predictions,
    tables: Mapping[str, pd.DataFrame],
    *,
    grid: Iterable[Cell] | None = None,
    missing: Sequence[Cell] | None = None,
    tries: int = TRIES,
) -> Verdicts:
    """Judges every prediction of an experiment.

    tables: `runs`, `requests`, `clears`, `commands`, `tests`, as far as they exist. grid: the cells that were to be run, if
    known; those without a row in the run table count as missing runs, unless `missing` says which are. tries: how many
    tables are searched to see that a claim that holds could have lost (0 skips that).
    """
    cells = None if grid is None else tuple(grid)
    if missing is None:
        missing = () if cells is None else missing_cells(cells, tables.get("runs", pd.DataFrame()))
    data = build(tables, cells, missing)
    schema = schema_of(predictions).with_frames(tables)
    return Verdicts(predictions.experiment, tuple(judge_one(p, data, schema, tries) for p in predictions.predictions))


def schema_of(predictions: Predictions) -> Schema:
    """The declared tables that the claims of a file are written over."""
    return PUBLISHED_TABLES if predictions.data else RUN_TABLES


def judge_one(prediction: Prediction, data: Data, schema: Schema, tries: int = TRIES) -> Judged:
    """Judges one prediction; a claim that can't be read, or names what is not there, is undetermined with the reason."""
    tables = data.of(prediction)
    unknown = [column for column in prediction.cells if column not in schema.tables.get("runs", {})]
    if unknown:
        why = f"cells: the run table has no column {unknown[0]}"
        return Judged(prediction, Verdict.UNDETERMINED, why, ())
    role = "claim" if len(prediction.parts) == 1 else "part"
    claims = [_judge_claim(role, part.claim, part.wording, tables, schema) for part in prediction.parts]
    verdict, why = _combine(claims)
    if verdict is Verdict.HELD:
        verdict, why = _beyond_the_wording(prediction, claims, verdict, why, tables, data, schema, tries)
    missing = data.missing_of(prediction)
    keys = differing(data.grid or missing)
    return Judged(
        prediction, verdict, why, tuple(claims), _runs(claims), tuple(describe(cell, keys) for cell in missing)
    )


def _judge_claim(role: str, text: str, wording: str | None, tables: Tables, schema: Schema) -> JudgedClaim:
    try:
        claim = parse(text, schema)
    except ClaimError as e:
        return JudgedClaim(role, text, wording, None, f"can't be judged: {e}")
    result = evaluate(claim, tables)
    return JudgedClaim(
        role, claim.text, wording, result.truth.value, numbers_behind(result.truth, result.findings), result.findings
    )


def _combine(claims: Sequence[JudgedClaim]) -> tuple[Verdict, str]:
    """held when all hold, failed when all fail, half when some hold and some fail, otherwise undetermined."""
    if len(claims) == 1:
        (only,) = claims
        return _single(only.holds), only.why
    results = [claim.holds for claim in claims]
    why = "; ".join(f"part {n + 1} {_word(claim.holds)}: {claim.why}" for n, claim in enumerate(claims))
    if True in results and False in results:
        return Verdict.HALF, why
    return _single(None if None in results else results[0]), why


def _beyond_the_wording(
    prediction: Prediction,
    claims: list[JudgedClaim],
    verdict: Verdict,
    why: str,
    tables: Tables,
    data: Data,
    schema: Schema,
    tries: int,
) -> tuple[Verdict, str]:
    """What is left of a claim that holds: its stated meaning, and whether it could have lost. Adds `means` to claims."""
    if prediction.means is not None:
        means = _judge_claim("means", prediction.means, None, tables, schema)
        claims.append(means)
        if means.holds is None:
            return Verdict.UNDETERMINED, f"{why}; but what it means is undetermined: {means.why}"
        if means.holds is False:
            return Verdict.HELD_IN_WORDING_ONLY, f"{why}; but what it means fails: {means.why}"
    for part in prediction.parts if tries else ():
        if find_example(parse(part.claim, schema), schema, prediction, data.planned(), tries=tries) is None:
            return (
                Verdict.HELD_IN_WORDING_ONLY,
                f"{why}; but nothing could have refuted it (none found in {tries} tables)",
            )
    return verdict, why


def _single(holds: bool | None) -> Verdict:
    return Verdict.UNDETERMINED if holds is None else Verdict.HELD if holds else Verdict.FAILED


def _word(holds: bool | None) -> str:
    return "is undetermined" if holds is None else "holds" if holds else "fails"


def _runs(claims: Sequence[JudgedClaim]) -> tuple[str, ...]:
    used = (row["run_id"] for claim in claims for finding in claim.findings for row in finding.rows)
    return tuple(dict.fromkeys(str(run_id) for run_id in used if run_id is not None))
