"""The evaluated share of the prompt, per request: right after a clear against all other requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.plots.style import INK, MARKERS, SERIES, figure, folded, kind_words, nothing, one_kind, styled
from analysis.tables.arms import arm_names

BIG, SMALL = 50.0, 25.0


@dataclass(frozen=True)
class ClearCost:
    """Counts over requests with a known evaluated share: after a clear, and the others. Shares in percent, None of nothing."""

    post_clear: int
    post_clear_over_half: int
    post_clear_min_pct: float | None
    post_clear_median_pct: float | None
    others: int
    others_under_quarter: int
    others_median_pct: float | None


def clear_cost(requests: pd.DataFrame) -> ClearCost:
    """How much of their prompt requests right after a clear evaluated again, and the other requests of the same runs.

    A run's first request is cold by nature and counts with the others; requests without a known share are left out.
    """
    known = requests.dropna(subset=["evaluated_pct"])
    after = known.loc[known["after_clear"].fillna(False), "evaluated_pct"].astype(float)
    other = known.loc[~known["after_clear"].fillna(False), "evaluated_pct"].astype(float)
    return ClearCost(
        len(after),
        int((after > BIG).sum()),
        float(after.min()) if len(after) else None,
        float(after.median()) if len(after) else None,
        len(other),
        int((other < SMALL).sum()),
        float(other.median()) if len(other) else None,
    )


def reuse_after_clear(requests: pd.DataFrame) -> Figure:
    """Every request as a dot, in two columns, with the median; a dot's shape and colour tell its arm."""
    kind = one_kind(requests)
    known = requests.dropna(subset=["evaluated_pct"])
    cost = clear_cost(requests)
    arms = arm_names(known)
    spread = np.random.default_rng(0)
    with styled():
        labels = [folded(f"{arm} (n = {(known['arm'] == arm).sum()})") for arm in arms]
        lines = max((label.count("\n") + 1 for label in labels), default=1)
        drawn, (axes,) = figure(7.2, 3.8 + 0.2 * lines * ((len(arms) + 1) // 2))
        axes.axhline(BIG, color=INK, linewidth=0.8, linestyle=":")
        for number, arm in enumerate(arms):
            rows = known[known["arm"] == arm]
            x = np.where(rows["after_clear"].fillna(False).to_numpy(dtype=bool), 0.0, 1.0) + spread.uniform(
                -0.27, 0.27, len(rows)
            )
            axes.plot(
                x,
                rows["evaluated_pct"].to_numpy(dtype=float),
                MARKERS[number % len(MARKERS)],
                color=SERIES[number % len(SERIES)],
                markeredgecolor=INK,
                markeredgewidth=0.4,
                markersize=5,
                alpha=0.8,
                label=labels[number],
            )
        for place, middle in ((0, cost.post_clear_median_pct), (1, cost.others_median_pct)):
            if middle is not None:
                axes.plot([place - 0.36, place + 0.36], [middle, middle], color=INK, linewidth=2.2)
                axes.text(place + 0.38, middle, f"median {middle:.0f} %", va="center", fontsize=8)
        if cost.post_clear == 0:
            axes.text(
                0,
                50,
                "no request\nfollowed a clear",
                ha="center",
                va="center",
                color=INK,
                fontsize=9,
                backgroundcolor="white",
            )
        if known.empty:
            nothing(axes, "no reply told how much of its prompt was evaluated")
        else:
            axes.set_xticks(
                [0, 1],
                [
                    f"right after a clear\nn = {cost.post_clear}, {cost.post_clear_over_half} over half",
                    f"other requests\nn = {cost.others}, {cost.others_under_quarter} under a quarter",
                ],
            )
            axes.set_xlim(-0.5, 1.65)
            axes.set_ylim(-3, 104)
            axes.set_ylabel("evaluated share of the prompt, %")
            axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        runs = requests["run_id"].nunique()
        axes.set_title(f"What a clear costs the prompt cache ({kind_words(kind, runs)})")
    return drawn
