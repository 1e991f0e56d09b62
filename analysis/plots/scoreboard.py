"""The scoreboard of predictions: every called shot, its verdict and whether it was really called before."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.plots.style import INK, figure, nothing, styled

# colour, hatch, sign; the sign alone tells them apart in grey.
VERDICTS = {
    "held": ("#009e73", "", "+"),
    "failed": ("#d55e00", "xx", "x"),
    "half": ("#f0e442", "//", "½"),
    "held_in_wording_only": ("#e69f00", "..", "(+)"),
    "undetermined": ("#dddddd", "", "?"),
}
WRAP = 78


def scoreboard(verdicts: Sequence[Mapping[str, Any]], title: str = "Called shots") -> Figure:
    """One row per prediction: id, wording, verdict, provenance. verdicts: dicts with id, wording, verdict, provenance."""
    with styled():
        lines = [textwrap.wrap(str(v.get("wording") or ""), WRAP)[:3] or [""] for v in verdicts]
        heights = [0.2 + 0.17 * len(text) for text in lines]
        drawn, (axes,) = figure(9.0, 0.9 + sum(heights))
        axes.grid(False)
        if not verdicts:
            nothing(axes, "no predictions were written down for this experiment")
            return drawn
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlim(0, 100)
        axes.set_ylim(sum(heights), 0)
        y = 0.0
        for verdict, text, height in zip(verdicts, lines, heights, strict=True):
            name = str(verdict.get("verdict"))
            colour, hatch, sign = VERDICTS.get(name, ("#ffffff", "", "?"))
            middle = y + height / 2
            axes.add_patch(
                Rectangle(
                    (0, y + 0.04), 3.6, height - 0.08, facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.6
                )
            )
            axes.text(
                1.8,
                middle,
                sign,
                ha="center",
                va="center",
                fontweight="bold",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            )
            axes.text(4.6, middle, str(verdict.get("id")), va="center", fontweight="bold", fontsize=8)
            axes.text(15.5, middle, "\n".join(text), va="center", fontsize=8)
            axes.text(
                83,
                middle,
                name.replace("_", " ") + "\n" + str(verdict.get("provenance") or ""),
                va="center",
                fontsize=8,
            )
            y += height
        held = sum(v.get("verdict") == "held" for v in verdicts)
        axes.set_title(f"{title}: {held} of {len(verdicts)} held")
    return drawn
