"""Before the run: how often would each claim hold, if the world were as assumed, and how many seeds would tell arms apart?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.stats import share
from harness.prereg.assumptions import Assumption, PowerPlan, draw
from harness.prereg.cells import Cell
from harness.prereg.data import Data, build
from harness.prereg.language import Row, Schema, Table, Type
from harness.prereg.predictions import Predictions
from harness.prereg.separate import ALPHA, MOST, POWER, best_p, can_separate, runs_needed
from harness.prereg.verdicts import Verdict, judge_one, schema_of

_NOT_AN_ARM = ("seed", "task", "experiment", "kind", "run_id", "arm")


@dataclass(frozen=True)
class Chance:
    """How often one prediction got each verdict. low, high: 95 % Wilson interval of the share that held."""

    prediction: str
    assumption: str
    seeds: int
    held: float
    low: float
    high: float
    verdicts: Mapping[str, int]
    undetermined_because: str | None


@dataclass(frozen=True)
class Separation:
    """Two arms that an assumption gives different rates of a flag. needed: runs per arm, None for more than MOST."""

    assumption: str
    column: str
    first: str
    second: str
    rates: tuple[float, float]
    needed: int | None


@dataclass(frozen=True)
class PowerReport:
    simulations: int
    chances: tuple[Chance, ...]
    separations: tuple[Separation, ...]
    seeds: tuple[int, ...]

    def remarks(self) -> list[str]:
        """What n seeds per arm can't show whatever happens."""
        lines = []
        for n in dict.fromkeys(self.seeds):
            if not can_separate(n):
                lines.append(
                    f"{n} runs against {n} can't separate two arms: even {n} of {n} against 0 of {n} gives "
                    f"p = {best_p(n):.2f} (Fisher's exact test, two-sided); 4 against 4 is the least that can"
                )
        return lines

    def as_json(self) -> dict[str, Any]:
        return {
            "simulations": self.simulations,
            "predictions": [dataclasses.asdict(chance) for chance in self.chances],
            "separations": [
                dataclasses.asdict(s) | {"alpha": ALPHA, "power": POWER, "most": MOST} for s in self.separations
            ],
            "remarks": self.remarks(),
        }


def simulate(
    predictions: Predictions,
    grid: Sequence[Cell],
    plan: PowerPlan,
    *,
    earlier: Mapping[str, pd.DataFrame] | None = None,
    seed: int = 0,
) -> PowerReport:
    """Simulates the grid under each assumption and judges every prediction on each simulated grid.

    earlier: tables of runs made before; they add the assumption "as in earlier runs", which draws whole runs (with all their
    rows in all tables) from those of the same arm. seed: of the simulation.
    """
    schema = schema_of(predictions)
    arms = _arms(grid)
    own = max(1, len(grid) // max(1, len(arms)))
    seeds = plan.seeds or (own,)
    sources: list[tuple[str, _Source]] = [(a.name, _Rates(a, schema)) for a in plan.assumptions]
    if earlier is not None:
        sources.append(("as in earlier runs", _Earlier(earlier)))
    chances = []
    for name, source in sources:
        for n in seeds:
            chances += _chances(
                name, source, predictions, arms, n, plan.simulations, schema, np.random.default_rng(seed)
            )
    return PowerReport(plan.simulations, tuple(chances), tuple(_separations(plan, arms, schema)), (own, *seeds))


class _Rates:
    def __init__(self, assumption: Assumption, schema: Schema) -> None:
        self._assumption = assumption
        self._columns = schema.tables["runs"]

    def data(self, arms: Sequence[Mapping[str, Any]], n: int, random: np.random.Generator) -> Data:
        rows = []
        for number, (arm, seed) in enumerate((arm, seed) for arm in arms for seed in range(n)):
            forms = self._assumption.of(arm)
            drawn = {name: draw(form, self._columns[name].type, random) for name, form in forms.items()}
            unknown = dict.fromkeys(self._columns)
            values = {**unknown, **arm, "seed": seed, **drawn, "run_id": f"simulated {number + 1}"}
            rows.append(Row(values["run_id"], values, values["run_id"]))
        return Data({"runs": Table("runs", tuple(rows), one_row_per_run=True)})


class _Earlier:
    """Draws whole runs of earlier experiments, for each arm from those that agree with it on all columns both have."""

    def __init__(self, frames: Mapping[str, pd.DataFrame]) -> None:
        self._tables = build(frames).tables
        self._by_run: dict[str, dict[str, list[Row]]] = {}
        for name, table in self._tables.items():
            for row in table.rows:
                self._by_run.setdefault(str(row.run_id), {}).setdefault(name, []).append(row)

    def data(self, arms: Sequence[Mapping[str, Any]], n: int, random: np.random.Generator) -> Data:
        rows: dict[str, list[Row]] = {name: [] for name in self._tables}
        for arm in arms:
            alike = self._alike(arm)
            for seed in range(n):
                run_id = f"simulated {len(rows['runs']) + 1}"
                chosen = self._by_run[alike[int(random.integers(len(alike)))]] if alike else {}
                if not chosen:
                    rows["runs"].append(
                        Row(f"{run_id} (no earlier run of its arm)", {**arm, "seed": seed}, missing=True)
                    )
                for name, own in chosen.items():
                    for row in own:
                        values = {**row.values, **{k: v for k, v in arm.items() if k in row.values}, "seed": seed}
                        rows[name].append(Row(run_id, {**values, "run_id": run_id}, run_id))
        return Data({k: Table(k, tuple(v), one_row_per_run=k == "runs") for k, v in rows.items()})

    def _alike(self, arm: Mapping[str, Any]) -> list[str]:
        same = []
        for row in self._tables["runs"].rows:
            shared = [k for k in arm if k not in ("seed", "experiment") and row.values.get(k) is not None]
            if all(row.values[k] == arm[k] for k in shared):
                same.append(str(row.run_id))
        return same


_Source = _Rates | _Earlier


def _chances(
    name: str,
    source: _Source,
    predictions: Predictions,
    arms: Sequence[Mapping[str, Any]],
    n: int,
    simulations: int,
    schema: Schema,
    random: np.random.Generator,
) -> list[Chance]:
    counts: dict[str, Counter[str]] = {p.id: Counter() for p in predictions.predictions}
    reasons: dict[str, str] = {}
    for _ in range(simulations):
        data = source.data(arms, n, random)
        for prediction in predictions.predictions:
            judged = judge_one(prediction, data, schema, tries=0)
            counts[prediction.id][str(judged.verdict)] += 1
            if judged.verdict is Verdict.UNDETERMINED:
                reasons.setdefault(prediction.id, judged.why)
    chances = []
    for prediction_id, verdicts in counts.items():
        held = share(verdicts[Verdict.HELD], simulations)
        assert held.estimate is not None
        assert held.low is not None
        assert held.high is not None
        because = reasons.get(prediction_id)
        chances.append(Chance(prediction_id, name, n, held.estimate, held.low, held.high, dict(verdicts), because))
    return chances


def _arms(grid: Sequence[Cell]) -> list[dict[str, Any]]:
    """The grid's cells without their seeds, each once."""
    arms: dict[str, dict[str, Any]] = {}
    for cell in grid:
        arm = {k: v for k, v in cell.columns().items() if k != "seed"}
        arms.setdefault(repr(sorted((k, str(v)) for k, v in arm.items())), arm)
    return list(arms.values())


def _separations(plan: PowerPlan, arms: Sequence[Mapping[str, Any]], schema: Schema) -> list[Separation]:
    found: dict[Separation, None] = {}
    differing = (
        [k for k in arms[0] if k not in _NOT_AN_ARM and len({str(arm.get(k)) for arm in arms}) > 1] if arms else []
    )
    for assumption in plan.assumptions:
        for one, other in combinations(arms, 2):
            rates, others = assumption.of(one), assumption.of(other)
            for column in rates:
                if schema.tables["runs"][column].type is not Type.FLAG or column not in others:
                    continue
                pair = (float(rates[column]), float(others[column]))
                labels = [" ".join(f"{k}={arm[k]}" for k in differing) for arm in (one, other)]
                if pair[0] != pair[1] and labels[0] != labels[1]:
                    found[Separation(assumption.name, column, labels[0], labels[1], pair, runs_needed(*pair))] = None
    return list(found)
