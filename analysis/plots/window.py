"""Window use over the steps of one run: what filled the window, and where it was cut, refused, cleared or guarded."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.plots.style import FAINT, INK, MARKS, PARTS, PlotError, figure, one_kind, styled

WIDEST = 60
CUT_BY = {"window": "by the window", "limit": "by the reply limit", "unparsed": "not readable"}
TITLE_WIDTH = 66  # characters of the title beside a plot of this width


def window_use(requests: pd.DataFrame, events: list[dict[str, Any]] | None = None) -> Figure:
    """Stacked tokens per request of one run against its window.

    requests: rows of one run. events: the run's events, for the marks of clears and guards.

    Raises:
        PlotError: no rows, or rows of several runs.
    """
    kind = one_kind(requests)
    if requests["run_id"].nunique() != 1:
        raise PlotError(f"window use is drawn for one run, not {requests['run_id'].nunique()}")
    rows = requests.reset_index(drop=True)
    first = rows.iloc[0]
    n_ctx = first["n_ctx"]
    with styled():
        drawn, (axes,) = figure(7.2, 3.6)
        _stack(axes, rows)
        top = float(n_ctx) if pd.notna(n_ctx) else float(rows["total"].max(skipna=True) or 1)
        if pd.notna(n_ctx):
            axes.axhline(top, color=INK, linewidth=1.2, linestyle="--")
            # Beside the plot: above the line the marks stand.
            place = axes.get_yaxis_transform()
            axes.text(1.01, top, f"window {int(n_ctx)}", ha="left", va="center", fontsize=8, transform=place)
        marks = _marks(axes, rows, events or [], top)
        axes.set_ylim(0, top * 1.22)
        axes.set_xlim(-0.7, len(rows) - 0.3)
        _step_ticks(axes, rows)
        again = bool((rows["attempt"] > 0).fillna(False).any())
        axes.set_xlabel(f"step (one request each{', sent again where it was refused' if again else ''})")
        axes.set_ylabel("tokens in the slot")
        axes.set_title(
            textwrap.fill(f"{first['arm']}, {first['task']}, seed {first['seed']}", TITLE_WIDTH)
            + f"\nwindow use of {kind} run {first['run_id']}"
        )
        parts = [p for p in PARTS if _drawn(rows, p)]
        handles: list[Any] = [
            Patch(facecolor=PARTS[p][0], hatch=PARTS[p][1], edgecolor=INK, linewidth=0.4, label=PARTS[p][2])
            for p in parts
        ]
        axes.legend(handles=handles + marks, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, fontsize=8)
    return drawn


def _split(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Heights per part; what was evaluated without a known split stands as `evaluated`."""
    known = rows["new"].notna() & rows["recomputed"].notna()
    plain = {
        p: rows[p].astype("Float64").fillna(0).to_numpy(dtype=float)
        for p in ("reused", "new", "recomputed", "evaluated", "generated")
    }
    mask = known.to_numpy(dtype=bool)
    return plain | {
        "new": plain["new"] * mask,
        "recomputed": plain["recomputed"] * mask,
        "evaluated": plain["evaluated"] * ~mask,
    }


def _drawn(rows: pd.DataFrame, part: str) -> bool:
    return bool(_split(rows)[part].sum() > 0)


def _stack(axes: Axes, rows: pd.DataFrame) -> None:
    x = np.arange(len(rows))
    bottom = np.zeros(len(rows))
    line = 0.4 if len(rows) <= WIDEST else 0.0
    for part, heights in ((p, _split(rows)[p]) for p in PARTS):
        colour, hatch, _ = PARTS[part]
        axes.bar(x, heights, bottom=bottom, width=0.86, color=colour, hatch=hatch, edgecolor=INK, linewidth=line)
        bottom += heights


def _marks(axes: Axes, rows: pd.DataFrame, events: list[dict[str, Any]], top: float) -> list[Any]:
    last = {int(s): i for i, s in enumerate(rows["step"])}
    places: dict[str, list[tuple[float, float]]] = {
        "cut": [(i, 1.06) for i in np.flatnonzero(rows["cut"].fillna(False))],
        "overflow": [(i, 1.06) for i in np.flatnonzero((rows["outcome"] == "overflow").fillna(False))],
        "guard": [(last[e["step"]], 1.14) for e in events if e["event"] == "guard" and e["step"] in last],
        "clear": [(_before(rows, e), 1.1) for e in events if e["event"] == "context" and e.get("cleared") != 0],
        "empty_clear": [(_before(rows, e), 1.14) for e in events if e["event"] == "context" and e.get("cleared") == 0],
    }
    handles = []
    for name, points in places.items():
        if not points:
            continue
        marker, colour, label = MARKS[name]
        number = _cuts(rows) if name == "cut" else str(len(points))
        if name == "clear":
            for x, _ in points:
                axes.axvline(x, ymax=1.12 / 1.22, color=colour, linewidth=1.6, linestyle=":")
            handles += axes.plot([], [], color=colour, linewidth=1.6, linestyle=":", label=f"{label} ({number})")
        else:
            x, y = [p[0] for p in points], [p[1] * top for p in points]
            handles += axes.plot(
                x,
                y,
                marker,
                color=colour,
                markeredgecolor=INK,
                markersize=7,
                linestyle="none",
                label=f"{label} ({number})",
            )
    return handles


def _cuts(rows: pd.DataFrame) -> str:
    """`2 by the window, 1 by the reply limit`."""
    kinds = rows.loc[rows["cut"].fillna(False), "cut_kind"].value_counts(dropna=False)
    return ",\n".join(f"{n} {CUT_BY.get(kind, 'cut')}" for kind, n in kinds.items())


def _before(rows: pd.DataFrame, event: dict[str, Any]) -> float:
    """A clear stands before the first request that comes after it: after a reply of its own step, or before the step's request."""
    step = event["step"] + (0.5 if event.get("when") == "after_reply" else -0.5)
    later = [i for i, s in enumerate(rows["step"]) if int(s) > step]
    return (later[0] if later else len(rows)) - 0.5


def _step_ticks(axes: Axes, rows: pd.DataFrame) -> None:
    every = max(1, len(rows) // 15)
    places = list(range(0, len(rows), every))
    axes.set_xticks(places, [str(rows["step"].iloc[i]) for i in places])
    axes.tick_params(axis="x", color=FAINT)
