"""predictions.yaml: what is expected, as data.

experiment: quick
predictions:
- id: q-1
  wording: With 8K at least two of three runs are solved.
  cells: {n_ctx: 8192}                 # columns of the run table; only runs of these cells count
  claim: count(runs, solved) >= 2
  means: ...                           # optional: a stricter claim without which it holds in wording only
  parts: [{wording: ..., claim: ...}]  # instead of claim: each judged, half when only some hold
  probability: 0.7                     # optional: how sure, above 0 and below 1
  reason: ...                          # optional: why it is expected
power: {...}                           # optional: assumptions for `calledshot power`
data: data/runs.yaml                   # only for published facts instead of own runs
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Scalar = bool | int | float | str
PREDICTION_KEYS = ("id", "wording", "cells", "claim", "parts", "means", "probability", "reason")
FILE_KEYS = ("experiment", "about", "data", "power", "predictions")


class PredictionError(ValueError):
    """A predictions file that does not fit; one line that names the file, the prediction and the mend."""


@dataclass(frozen=True)
class Part:
    claim: str
    wording: str | None = None


@dataclass(frozen=True)
class Prediction:
    """One prediction. parts: one without wording for a plain claim. cells: column -> the values it speaks of."""

    id: str
    wording: str
    parts: tuple[Part, ...]
    cells: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    means: str | None = None
    probability: float | None = None
    reason: str | None = None

    def covers(self, columns: Mapping[str, Any]) -> bool | None:
        """Whether a run with these arm columns is one it speaks of; None when a column of it is not known."""
        unknown = False
        for column, values in self.cells.items():
            value = columns.get(column)
            if value is None:
                unknown = True
            elif value not in values:
                return False
        return None if unknown else True


@dataclass(frozen=True)
class Predictions:
    """A whole file. data: a file of published facts beside it that the claims are judged on, instead of run folders."""

    experiment: str
    predictions: tuple[Prediction, ...]
    data: str | None = None
    power: Mapping[str, Any] | None = None
    about: str | None = None


def load_predictions(path: Path) -> Predictions:
    """Reads a predictions file.

    Raises:
        PredictionError: a file that is missing, is not YAML or does not have the form above.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise PredictionError(f"{path}: can't be read ({e.strerror})") from e
    return parse_predictions(text, str(path))


def parse_predictions(text: str, where: str) -> Predictions:
    """The same from text; `where` names it in errors."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise PredictionError(f"{where}: not YAML ({' '.join(str(e).split())})") from e
    if not isinstance(document, dict):
        raise PredictionError(f"{where}: expected keys such as experiment and predictions")
    _known_keys(document, FILE_KEYS, where)
    experiment = _text(document.get("experiment"), f"{where}: experiment")
    listed = document.get("predictions")
    if not isinstance(listed, list) or not listed:
        raise PredictionError(f"{where}: predictions: needs a list with at least one prediction")
    predictions = tuple(_prediction(entry, f"{where}: prediction {number + 1}") for number, entry in enumerate(listed))
    seen: set[str] = set()
    for prediction in predictions:
        if prediction.id in seen:
            raise PredictionError(f"{where}: {prediction.id}: this id is used twice; ids are unique")
        seen.add(prediction.id)
    power = document.get("power")
    if power is not None and not isinstance(power, dict):
        raise PredictionError(f"{where}: power: expected keys such as assumptions")
    data, about = document.get("data"), document.get("about")
    return Predictions(
        experiment,
        predictions,
        data=None if data is None else _text(data, f"{where}: data"),
        power=power,
        about=None if about is None else _text(about, f"{where}: about"),
    )


def _prediction(entry: Any, where: str) -> Prediction:
    if not isinstance(entry, dict):
        raise PredictionError(f"{where}: expected keys such as id, wording and claim")
    name = _text(entry.get("id"), f"{where}: id")
    where = f"{where} ({name})"
    _known_keys(entry, PREDICTION_KEYS, where)
    probability = entry.get("probability")
    if probability is not None and not (_is_number(probability) and 0 < probability < 1):
        raise PredictionError(f"{where}: probability: expected a number above 0 and below 1, got {probability!r}")
    means, reason = entry.get("means"), entry.get("reason")
    return Prediction(
        id=name,
        wording=_text(entry.get("wording"), f"{where}: wording"),
        parts=_parts(entry, where),
        cells=_cells(entry.get("cells"), where),
        means=None if means is None else _text(means, f"{where}: means"),
        probability=None if probability is None else float(probability),
        reason=None if reason is None else _text(reason, f"{where}: reason"),
    )


def _parts(entry: dict[str, Any], where: str) -> tuple[Part, ...]:
    claim, parts = entry.get("claim"), entry.get("parts")
    if (claim is None) == (parts is None):
        raise PredictionError(f"{where}: needs either a claim or parts")
    if claim is not None:
        return (Part(_text(claim, f"{where}: claim")),)
    if not isinstance(parts, list) or len(parts) < 2:
        raise PredictionError(f"{where}: parts: needs a list of two or more, each with a claim")
    built = []
    for number, part in enumerate(parts):
        at = f"{where}: part {number + 1}"
        if not isinstance(part, dict):
            raise PredictionError(f"{at}: expected the keys wording and claim")
        _known_keys(part, ("wording", "claim"), at)
        wording = part.get("wording")
        built.append(
            Part(
                _text(part.get("claim"), f"{at}: claim"), None if wording is None else _text(wording, f"{at}: wording")
            )
        )
    return tuple(built)


def _cells(value: Any, where: str) -> dict[str, tuple[Scalar, ...]]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PredictionError(f"{where}: cells: expected columns with values, such as {{agent: part3, n_ctx: 8192}}")
    cells: dict[str, tuple[Scalar, ...]] = {}
    for column, wanted in value.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if not values or not all(isinstance(v, (bool, int, float, str)) for v in values):
            raise PredictionError(f"{where}: cells: {column}: expected a value or a list of values, got {wanted!r}")
        cells[str(column)] = tuple(values)
    return cells


def _known_keys(document: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in document:
        if key not in known:
            raise PredictionError(f"{where}: no such key: {key}; known here: {', '.join(known)}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PredictionError(f"{where}: needed, a text (got {value!r})")
    return value.strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
