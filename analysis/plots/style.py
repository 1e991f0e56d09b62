"""One look for every figure: colour-blind safe (Okabe and Ito's colours), told apart in grey too by hatches and markers.

Figures are drawn without a display. Every figure names the kind of its runs; kinds are never mixed in one.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, FAINT = "#1a1a1a", "#767676"
# Lightness falls from reused to generated, so the order survives a grey print.
PARTS = {
    "reused": ("#cfe3f1", "", "reused from the cache"),
    "new": ("#56b4e9", "//", "new"),
    "recomputed": ("#d55e00", "xx", "recomputed"),
    "evaluated": ("#0072b2", "..", "evaluated (split not known)"),
    "generated": ("#3b3b3b", "", "generated"),
}
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#3b3b3b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
MARKS = {
    "cut": ("v", "#d55e00", "cut reply"),
    "overflow": ("X", "#1a1a1a", "refused as too large"),
    "clear": ("|", "#009e73", "clear"),
    "empty_clear": ("D", "#ffffff", "clear that found nothing"),
    "guard": ("P", "#cc79a7", "tests put back"),
}
RC = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
}
DPI = 120
LABEL_WIDTH = 27


class PlotError(ValueError):
    """Data that can't be drawn; the message says what is missing."""


@contextmanager
def styled() -> Iterator[None]:
    """The style, for the time of drawing one figure."""
    with rc_context(RC):
        yield


def figure(
    width: float = 7.2, height: float = 3.4, rows: int = 1, columns: int = 1, **options: object
) -> tuple[Figure, list[Axes]]:
    """A figure (inches) without a display, and its axes in reading order. Call inside `styled()`."""
    made = Figure(figsize=(width, height))
    FigureCanvasAgg(made)
    axes = made.subplots(rows, columns, squeeze=False, **options)  # type: ignore[call-overload]
    return made, [a for row in axes for a in row]


def one_kind(table: pd.DataFrame) -> str:
    """The kind of all rows; PlotError when there are none or kinds are mixed."""
    kinds = sorted(table["kind"].dropna().unique())
    if not kinds:
        raise PlotError("there are no runs to draw")
    if len(kinds) > 1:
        raise PlotError(f"real and other runs are never mixed in one figure: {', '.join(kinds)}; choose one kind first")
    return str(kinds[0])


def kind_words(kind: str, n: int, what: str = "run") -> str:
    """`12 real runs`, for titles."""
    return f"{n} {kind} {what}{'' if n == 1 else 's'}"


def folded(name: str) -> str:
    """An arm's name on as many lines as it takes beside a plot; `(n = 3)` stays in one piece."""
    held = name.replace(" = ", "\u00a0=\u00a0")
    return textwrap.fill(held, LABEL_WIDTH, break_long_words=False).replace("\u00a0", " ")


def nothing(axes: Axes, why: str) -> None:
    """An axes without data says so."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, color=FAINT, wrap=True)


def png(drawn: Figure) -> bytes:
    buffer = BytesIO()
    drawn.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def data_uri(drawn: Figure) -> str:
    """The figure as a PNG inside a data: address, for one-file pages."""
    return "data:image/png;base64," + base64.b64encode(png(drawn)).decode("ascii")
