"""What is assumed about runs that were not made yet: rates per arm, or the rows of earlier runs to draw from.

In predictions.yaml:

    power:
      simulations: 400
      seeds: [3, 5, 10]                       # seeds per arm; the grid's own number when left out
      assumptions:
      - name: clearing helps
        rates:                                # later entries win over earlier ones
        - {solved: 0.3, evaluated_tokens: {median: 20000, spread: 1.4}}
        - {where: {agent: part3}, solved: 0.8, prompts: {mean: 3}}

A number for a flag is its probability; for any other column it is the value itself. {mean: m} draws whole numbers (Poisson),
{median: m, spread: s} draws positive numbers (log-normal: two thirds lie between m/s and m*s), {share: {a: 0.7, b: 0.3}}
draws texts or numbers by weight. A column nobody gives a rate for is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.prereg.language import Schema, Type
from harness.prereg.language.rows import Plain
from harness.prereg.predictions import PredictionError

SIMULATIONS = 400
_FORMS = "a number, {mean: m}, {median: m, spread: s} or {share: {value: weight, …}}"


@dataclass(frozen=True)
class Rate:
    """where: arm columns -> values it is for (all runs when empty). columns: column -> how its values are drawn."""

    where: Mapping[str, tuple[Any, ...]]
    columns: Mapping[str, Any]

    def applies(self, arm: Mapping[str, Any]) -> bool:
        return all(arm.get(column) in values for column, values in self.where.items())


@dataclass(frozen=True)
class Assumption:
    name: str
    rates: tuple[Rate, ...]

    def of(self, arm: Mapping[str, Any]) -> dict[str, Any]:
        """Column -> how it is drawn, for one arm."""
        drawn: dict[str, Any] = {}
        for rate in self.rates:
            if rate.applies(arm):
                drawn |= rate.columns
        return drawn


@dataclass(frozen=True)
class PowerPlan:
    simulations: int
    seeds: tuple[int, ...]
    assumptions: tuple[Assumption, ...]


def power_plan(section: Mapping[str, Any] | None, schema: Schema, where: str) -> PowerPlan:
    """Reads the power section of a predictions file.

    Raises:
        PredictionError: unknown keys and columns, or values that do not fit, with the mend.
    """
    section = section or {}
    for key in section:
        if key not in ("simulations", "seeds", "assumptions"):
            raise PredictionError(f"{where}: power: no such key: {key}; known here: simulations, seeds, assumptions")
    simulations = section.get("simulations", SIMULATIONS)
    seeds = section.get("seeds", [])
    for value in [simulations, *(seeds if isinstance(seeds, list) else [seeds])]:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise PredictionError(f"{where}: power: simulations and seeds are whole numbers above 0, got {value!r}")
    listed = section.get("assumptions", [])
    if not isinstance(listed, list):
        raise PredictionError(f"{where}: power: assumptions: expected a list, each with name and rates")
    assumptions = tuple(_assumption(a, schema, f"{where}: power: assumption {n + 1}") for n, a in enumerate(listed))
    return PowerPlan(simulations, tuple(seeds if isinstance(seeds, list) else [seeds]), assumptions)


def _assumption(entry: Any, schema: Schema, where: str) -> Assumption:
    if not isinstance(entry, dict) or not isinstance(entry.get("rates"), list) or not entry.get("name"):
        raise PredictionError(f"{where}: expected name and a list of rates")
    rates = []
    for rate in entry["rates"]:
        if not isinstance(rate, dict) or not isinstance(rate.get("where", {}), dict):
            raise PredictionError(f"{where}: a rate is a set of columns, with an optional where, got {rate!r}")
        selected = {str(c): tuple(v) if isinstance(v, list) else (v,) for c, v in rate.get("where", {}).items()}
        columns = {str(c): v for c, v in rate.items() if c != "where"}
        for column in (*selected, *columns):
            if column not in schema.tables["runs"]:
                raise PredictionError(f"{where}: the run table has no column {column!r}")
        for column, form in columns.items():
            _check_form(column, form, schema.tables["runs"][column].type, where)
        rates.append(Rate(selected, columns))
    return Assumption(str(entry["name"]), tuple(rates))


def _check_form(column: str, form: Any, kind: Type, where: str) -> None:
    number = isinstance(form, (int, float)) and not isinstance(form, bool) and math.isfinite(form)
    if kind is Type.FLAG:
        fits = number and 0 <= form <= 1
        if not fits:
            raise PredictionError(f"{where}: {column}: expected a probability from 0 to 1, got {form!r}")
        return
    if isinstance(form, dict):
        keys = set(form)
        values = list(form.values())
        positive = all(isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0 for v in values)
        shares = form.get("share")
        fits = (
            (keys == {"mean"} and kind is Type.NUMBER and positive)
            or (keys == {"median", "spread"} and kind is Type.NUMBER and positive and form["spread"] >= 1)
            or (keys == {"share"} and isinstance(shares, dict) and bool(shares) and _are_weights(shares.values()))
        )
    else:
        fits = number if kind is Type.NUMBER else isinstance(form, str)
    if not fits:
        raise PredictionError(f"{where}: {column}: expected {_FORMS}, got {form!r}")


def _are_weights(values: Any) -> bool:
    listed = list(values)
    fine = all(isinstance(v, (int, float)) and not isinstance(v, bool) and v >= 0 for v in listed)
    return fine and sum(listed) > 0


def draw(form: Any, kind: Type, random: np.random.Generator) -> Plain:
    """One value of a column."""
    if kind is Type.FLAG:
        return bool(random.random() < form)
    if not isinstance(form, dict):
        return form if isinstance(form, str) else float(form)
    if "mean" in form:
        return float(random.poisson(form["mean"]))
    if "median" in form:
        return float(np.round(random.lognormal(math.log(form["median"]), math.log(form["spread"]))))
    values: Sequence[Any] = list(form["share"])
    weights = np.array([float(form["share"][value]) for value in values])
    chosen = values[int(random.choice(len(values), p=weights / weights.sum()))]
    return chosen if isinstance(chosen, str) else float(chosen)
