"""What every notebook needs: the runs it is about, and figures and tables that show in the report as accessible HTML.

The runs folder comes from the environment (CALLEDSHOT_RUNS, default `runs`), the verdicts as a JSON file
(CALLEDSHOT_VERDICTS), so that the same notebook runs in an editor, in the tests and for the report.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, display
from matplotlib.figure import Figure

from analysis.report.html import frame_table, image
from analysis.tables.records import Records, load


def records() -> dict[str, Records]:
    """The finished runs by kind, real ones first; kinds are never mixed."""
    found = load(os.environ.get("CALLEDSHOT_RUNS", "runs"), short_arms=True)
    return {kind: found.of_kind(kind) for kind in sorted(found.kinds, key=lambda k: (k != "real", k))}


def verdicts() -> list[dict[str, Any]]:
    """The verdicts on the experiment's predictions; none where no file is named."""
    path = os.environ.get("CALLEDSHOT_VERDICTS")
    return json.loads(Path(path).read_text(encoding="utf-8")) if path else []


def show(figure: Figure, words: str) -> None:
    """Displays a figure; words: what it shows, for those who can't see it."""
    display(HTML(image(figure, words, words)))


def show_table(caption: str, frame: pd.DataFrame) -> None:
    display(HTML(frame_table(caption, frame)))


def say(words: str) -> None:
    """A sentence with numbers in it."""
    print(words)
