"""Hidden tests by arm and seed; declared done against solved by arm."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from analysis.plots.style import (
    FAINT,
    INK,
    LABEL_WIDTH,
    PlotError,
    figure,
    folded,
    kind_words,
    nothing,
    one_kind,
    styled,
)
from analysis.stats import share
from analysis.tables.arms import arm_names, natural_order

# Widths in inches: of a cell with few seeds, of the narrowest one that still holds numbers, of all cells together.
WIDE_CELL, WRITTEN_CELL, WIDEST = 0.75, 0.4, 9.0
# declared done x solved, the order of the stack; false completions in the loudest colour.
CELLS = {
    (True, True): ("declared done, solved", "#009e73", ""),
    (False, True): ("not declared done, solved", "#56b4e9", "//"),
    (False, False): ("not declared done, not solved", "#dddddd", ".."),
    (True, False): ("declared done, NOT solved", "#d55e00", "xx"),
}


def hidden_tests(runs: pd.DataFrame) -> Figure:
    """A grid: one row per arm and task, one column per seed, each cell with passed of total; shaded by the share passed."""
    kind = one_kind(runs)
    several = runs["task"].nunique() > 1
    names = runs["arm"] + (", " + runs["task"] if several else "")
    rows = list(dict.fromkeys(names.loc[sorted(runs.index, key=lambda i: _row_order(runs, i))]))
    seeds = sorted(int(s) for s in runs["seed"].dropna().unique())
    if not seeds:
        raise PlotError("no run has a seed to order by")
    with styled():
        cell = min(WIDE_CELL, WIDEST / len(seeds))
        width = 1.9 + 0.09 * min(LABEL_WIDTH, max(map(len, rows))) + cell * len(seeds) + WIDE_CELL
        drawn, (axes,) = figure(width, 1.3 + 0.42 * len(rows))
        axes.grid(False)
        for y, name in enumerate(rows):
            for x, seed in enumerate(seeds):
                chosen = runs[(names == name) & (runs["seed"] == seed)]
                _cell(axes, x, y, chosen, written=cell >= WRITTEN_CELL)
            of_arm = runs[names == name].dropna(subset=["solved"])
            found = share(int(of_arm["solved"].sum()), len(of_arm))
            text = "no grade" if found.estimate is None else f"{int(of_arm['solved'].sum())}/{found.n}"
            axes.text(len(seeds) - 0.5 + 0.6 * WIDE_CELL / cell, y, text, ha="center", va="center", fontweight="bold")
        axes.set_xlim(-0.5, len(seeds) - 0.5 + 1.2 * WIDE_CELL / cell)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        shown = range(0, len(seeds), max(1, round(WRITTEN_CELL / cell)))
        axes.set_xticks(
            [*shown, len(seeds) - 0.5 + 0.6 * WIDE_CELL / cell], [*(str(seeds[i]) for i in shown), "solved"]
        )
        axes.set_yticks(range(len(rows)), [folded(name) for name in rows])
        axes.set_xlabel("seed")
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_title(f"Hidden tests passed\n({kind_words(kind, len(runs))}; bold frame: declared done)")
    return drawn


def _row_order(runs: pd.DataFrame, index: int) -> tuple[object, ...]:
    """By task, then by arm."""
    return str(runs.at[index, "task"]), natural_order(str(runs.at[index, "arm"]))


def _cell(axes: Axes, x: int, y: int, chosen: pd.DataFrame, *, written: bool) -> None:
    """One run; where cells are too narrow for numbers the shade alone tells the share."""
    if chosen.empty:
        axes.text(x, y, "no run" if written else "", ha="center", va="center", color=FAINT, fontsize=7)
        return
    row = chosen.iloc[0]
    known = pd.notna(row["hidden_passed"]) and pd.notna(row["hidden_total"]) and row["hidden_total"] > 0
    part = float(row["hidden_passed"]) / float(row["hidden_total"]) if known else 0.0
    done = pd.notna(row["declared_done"]) and bool(row["declared_done"])
    axes.add_patch(
        Rectangle(
            (x - 0.45, y - 0.42),
            0.9,
            0.84,
            facecolor=_shade(part) if known else "white",
            edgecolor=INK if done else "#bbbbbb",
            linewidth=2.0 if done else 0.8,
            hatch="" if known else "///",
        )
    )
    if not written:
        return
    text = f"{row['hidden_passed']}/{row['hidden_total']}" if known else "?"
    axes.text(x, y, text, ha="center", va="center", color="white" if part > 0.55 else INK)


def _shade(part: float) -> tuple[float, float, float]:
    """White to dark blue; lightness alone tells the share."""
    low, high = np.array([1.0, 1.0, 1.0]), np.array([0.0, 0.33, 0.55])
    r, g, b = low + (high - low) * part
    return float(r), float(g), float(b)


def done_by_solved(runs: pd.DataFrame) -> Figure:
    """Stacked bars: per arm, how many runs declared done or not, and solved the task or not."""
    kind = one_kind(runs)
    known = runs.dropna(subset=["declared_done", "solved"])
    arms = arm_names(known)
    with styled():
        drawn, (axes,) = figure(7.2, 1.5 + 0.42 * max(1, len(arms)))
        if not arms:
            nothing(axes, "no run was graded")
            return drawn
        axes.grid(axis="x")
        axes.grid(False, axis="y")
        left = np.zeros(len(arms))
        for (done, solved), (_, colour, hatch) in CELLS.items():
            counts = np.array(
                [
                    int(((known["arm"] == a) & (known["declared_done"] == done) & (known["solved"] == solved)).sum())
                    for a in arms
                ]
            )
            axes.barh(
                range(len(arms)),
                counts,
                left=left,
                color=colour,
                hatch=hatch,
                edgecolor=INK,
                linewidth=0.5,
                height=0.68,
            )
            for y, (count, start) in enumerate(zip(counts, left, strict=True)):
                if count:
                    axes.text(
                        start + count / 2,
                        y,
                        str(count),
                        ha="center",
                        va="center",
                        fontsize=8,
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                    )
            left += counts
        axes.set_yticks(range(len(arms)), [folded(f"{a} (n = {int((known['arm'] == a).sum())})") for a in arms])
        axes.invert_yaxis()
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("runs")
        handles = [
            Patch(facecolor=c, hatch=h, edgecolor=INK, linewidth=0.5, label=label) for label, c, h in CELLS.values()
        ]
        axes.legend(
            handles=handles, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.4, -0.55 / len(arms) - 0.12)
        )
        axes.set_title(f"Declared done and solved ({kind_words(kind, len(known))})")
    return drawn
