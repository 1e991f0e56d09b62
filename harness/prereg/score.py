"""How good the stated probabilities were: Brier and log score, beside stated baselines.

A probability is that of the verdict `held`; every other decided verdict (failed, half, held in wording only) counts as not
held, and undetermined predictions are left out. Both scores are losses: 0 is perfect. Under 30 predictions a calibration
curve would show noise, so there is only the list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.prereg.verdicts import Judged, Verdict

ENOUGH_FOR_A_CURVE = 30
BINS = 5


@dataclass(frozen=True)
class Scored:
    id: str
    probability: float
    held: bool

    @property
    def brier(self) -> float:
        """(probability - outcome)², 0 to 1."""
        return (self.probability - self.held) ** 2

    @property
    def log(self) -> float:
        """-ln of the probability given to what came true, 0 upward."""
        return -math.log(self.probability if self.held else 1 - self.probability)


@dataclass(frozen=True)
class Scores:
    """brier and log: means over the list, None when it is empty. baselines: the same for forecasts nobody had to think for:
    always 0.5, and always the share that held (known only afterwards, so no forecast could have used it)."""

    scored: tuple[Scored, ...]
    brier: float | None
    log: float | None
    baselines: dict[str, dict[str, float]]
    curve: list[dict[str, Any]] | None

    def as_json(self) -> dict[str, Any]:
        return {
            "n": len(self.scored),
            "brier": self.brier,
            "log": self.log,
            "baselines": self.baselines,
            "list": [
                {"id": s.id, "probability": s.probability, "held": s.held, "brier": s.brier, "log": s.log}
                for s in self.scored
            ],
            "curve": self.curve,
            "note": None if self.curve else f"fewer than {ENOUGH_FOR_A_CURVE} predictions: no calibration curve",
        }


def score(judged: Sequence[Judged]) -> Scores:
    """Scores the predictions that have a probability and a decided verdict."""
    scored = tuple(
        Scored(j.prediction.id, j.prediction.probability, j.verdict is Verdict.HELD)
        for j in judged
        if j.prediction.probability is not None and j.verdict is not Verdict.UNDETERMINED
    )
    if not scored:
        return Scores((), None, None, {}, None)
    share = sum(s.held for s in scored) / len(scored)
    baselines = {"always 0.5": _means([Scored(s.id, 0.5, s.held) for s in scored])}
    if 0 < share < 1:
        baselines[f"always {share:.2f} (the share that held)"] = _means([Scored(s.id, share, s.held) for s in scored])
    else:
        baselines[f"always {share:.0f} (the share that held)"] = {"brier": 0.0, "log": 0.0}
    own = _means(scored)
    return Scores(scored, own["brier"], own["log"], baselines, _curve(scored))


def _means(scored: Sequence[Scored]) -> dict[str, float]:
    return {
        "brier": math.fsum(s.brier for s in scored) / len(scored),
        "log": math.fsum(s.log for s in scored) / len(scored),
    }


def _curve(scored: Sequence[Scored]) -> list[dict[str, Any]] | None:
    if len(scored) < ENOUGH_FOR_A_CURVE:
        return None
    curve = []
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        inside = [s for s in scored if low <= s.probability < high]
        if inside:
            mean = math.fsum(s.probability for s in inside) / len(inside)
            curve.append(
                {
                    "from": low,
                    "to": high,
                    "n": len(inside),
                    "mean_probability": mean,
                    "held": sum(s.held for s in inside),
                }
            )
    return curve
