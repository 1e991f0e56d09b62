"""Tokens and seconds by arm, and the differences between two arms paired by task and seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.plots.style import (
    FAINT,
    HATCHES,
    INK,
    MARKERS,
    PARTS,
    SERIES,
    figure,
    folded,
    kind_words,
    nothing,
    one_kind,
    styled,
)
from analysis.stats import paired_difference
from analysis.tables.arms import arm_names

TIMES = (
    ("prompt_seconds", "reading prompts"),
    ("writing_seconds", "writing"),
    ("tool_seconds", "tools"),
    ("harness_seconds", "harness"),
)
TOKENS = ("new", "recomputed", "generated")


def tokens_by_arm(runs: pd.DataFrame) -> Figure:
    """Two panels: every run's evaluated tokens as a dot with the arm's median, and the means of their parts."""
    kind = one_kind(runs)
    arms = arm_names(runs)
    with styled():
        drawn, (left, right) = figure(8.4, 1.6 + 0.42 * len(arms), columns=2, sharey=True)
        _dots(left, runs, arms, "evaluated_tokens", "evaluated prompt tokens per run")
        _stack(
            right,
            runs,
            arms,
            [(f"{p}_tokens", PARTS[p][2], PARTS[p][0], PARTS[p][1]) for p in TOKENS],
            "tokens per run, mean",
        )
        drawn.suptitle(
            f"Tokens by arm ({kind_words(kind, len(runs))})", x=0.01, ha="left", fontsize=10, fontweight="bold"
        )
    return drawn


def seconds_by_arm(runs: pd.DataFrame) -> Figure:
    """Two panels: every run's seconds as a dot with the arm's median, and where the time went."""
    kind = one_kind(runs)
    arms = arm_names(runs)
    parts = [(column, label, SERIES[i], HATCHES[i]) for i, (column, label) in enumerate(TIMES)]
    with styled():
        drawn, (left, right) = figure(8.4, 1.6 + 0.42 * len(arms), columns=2, sharey=True)
        _dots(left, runs, arms, "seconds", "seconds per run")
        _stack(right, runs, arms, parts, "seconds per run, mean")
        drawn.suptitle(
            f"Seconds by arm ({kind_words(kind, len(runs))})", x=0.01, ha="left", fontsize=10, fontweight="bold"
        )
    return drawn


def paired_differences(runs: pd.DataFrame, pairs: Sequence[tuple[str, str]], column: str, unit: str) -> Figure:
    """Per pair of arms (a, b) every pair's difference b - a as a dot, the mean as a bar, and n and p in words.

    Raises:
        ValueError: an arm has several runs of one task and seed.
    """
    kind = one_kind(runs)
    with styled():
        labels = [pair_label(a, b) for a, b in pairs]
        lines = sum(max(2, label.count("\n") + 1) for label in labels)
        drawn, (axes,) = figure(7.2, 1.3 + max(0.55 * max(1, len(pairs)), 0.2 * lines))
        axes.grid(False, axis="y")
        axes.grid(axis="x")
        axes.axvline(0, color=INK, linewidth=1)
        drawn_any = False
        for y, (a, b) in enumerate(pairs):
            found = paired_difference(runs, column, a, b)
            if found.n == 0:
                axes.text(0, y, "no pairs", ha="center", va="center", color=FAINT, backgroundcolor="white", fontsize=8)
                continue
            drawn_any = True
            offsets = np.linspace(-0.16, 0.16, found.n) if found.n > 1 else [0.0]
            axes.plot(
                found.differences,
                y + np.asarray(offsets),
                MARKERS[0],
                color=SERIES[0],
                markeredgecolor=INK,
                markeredgewidth=0.4,
                markersize=5,
            )
            axes.plot([found.mean, found.mean], [y - 0.3, y + 0.3], color=SERIES[1], linewidth=3)
            p = "exact" if found.exact else "sampled"
            axes.text(
                1.01,
                y,
                f"n = {found.n} {'pair' if found.n == 1 else 'pairs'}\np = {found.p:.2g} ({p})",
                va="center",
                fontsize=8,
                transform=axes.get_yaxis_transform(),
            )
        axes.set_yticks(range(len(pairs)), labels)
        axes.set_ylim(len(pairs) - 0.5, -0.5)
        axes.set_xlabel(f"difference in {unit}; bar: mean")
        if not drawn_any:
            axes.set_xticks([0])
        axes.set_title(f"Paired differences ({kind_words(kind, len(runs))})")
    return drawn


def pair_label(a: str, b: str) -> str:
    """`b minus a`, and what both arms have in common named once, where each has something of its own."""
    first, second = a.split(), b.split()
    common = [word for word in second if word in first]
    own_a, own_b = ([word for word in arm if word not in common] for arm in (first, second))
    if not common or not own_a or not own_b:
        return f"{folded(b)}\n{folded('minus ' + a)}"
    return f"{folded(' '.join(own_b))}\n{folded('minus ' + ' '.join(own_a))}\n{folded('(' + ' '.join(common) + ')')}"


def _dots(axes: Axes, runs: pd.DataFrame, arms: Sequence[str], column: str, label: str) -> None:
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    known = runs.dropna(subset=[column])
    if known.empty:
        nothing(axes, f"{label}: not known")
        return
    for y, arm in enumerate(arms):
        values = known.loc[known["arm"] == arm, column].astype(float).to_numpy()
        if not len(values):
            axes.text(0, y, " not known", va="center", color=FAINT, fontsize=8)
            continue
        offsets = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(
            values,
            y + offsets,
            MARKERS[y % len(MARKERS)],
            color=SERIES[y % len(SERIES)],
            markeredgecolor=INK,
            markeredgewidth=0.4,
            markersize=5,
        )
        middle = float(np.median(values))
        axes.plot([middle, middle], [y - 0.33, y + 0.33], color=INK, linewidth=2.2)
    axes.set_yticks(range(len(arms)), [folded(f"{a} (n = {int((known['arm'] == a).sum())})") for a in arms])
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"{label}; line: median")


def _stack(
    axes: Axes, runs: pd.DataFrame, arms: Sequence[str], parts: Sequence[tuple[str, str, str, str]], label: str
) -> None:
    """Mean parts of runs that know all of them; the number of those runs stands behind the bar."""
    axes.grid(axis="x")
    axes.grid(False, axis="y")
    known = runs.dropna(subset=[column for column, *_ in parts])
    if known.empty:
        nothing(axes, f"{label}: the parts are not known")
        return
    left = np.zeros(len(arms))
    means = known.groupby("arm")[[column for column, *_ in parts]].mean().reindex(list(arms)).fillna(0)
    for column, _, colour, hatch in parts:
        widths = means[column].to_numpy(dtype=float)
        axes.barh(
            range(len(arms)), widths, left=left, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.4, height=0.66
        )
        left += widths
    for y, arm in enumerate(arms):
        axes.text(left[y], y, f" n = {int((known['arm'] == arm).sum())}", va="center", fontsize=7, color=FAINT)
    axes.set_xlim(0, float(left.max()) * 1.16 if left.max() > 0 else 1)
    axes.set_xlabel(label)
    handles = [Patch(facecolor=c, hatch=h, edgecolor=INK, linewidth=0.4, label=name) for _, name, c, h in parts]
    axes.legend(
        handles=handles, fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.62 / len(arms) - 0.12)
    )
