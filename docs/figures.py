"""The README's figures, drawn from the demo's runs: python docs/figures.py runs/quick

docs/demo_done.png: what each arm declared and what the hidden tests say. docs/demo_window.png: the window over the steps of
the run with the most clears and cut replies.
"""

from __future__ import annotations

import sys
from pathlib import Path

from analysis.plots.outcomes import done_by_solved
from analysis.plots.style import png
from analysis.plots.window import window_use
from analysis.report.figures import telling_runs
from analysis.tables import load, requests, runs


def main(folder: str) -> None:
    """Writes both beside this file, from the real runs of the folder."""
    records = load(folder, short_arms=True).of_kind("real")
    asked = requests(records)
    (run,) = telling_runs(asked, most=1)
    events = next(r.events for r in records.runs if r.result["run_id"] == run)
    figures = {
        "demo_done.png": done_by_solved(runs(records)),
        "demo_window.png": window_use(asked[asked["run_id"] == run], events),
    }
    for name, figure in figures.items():
        path = Path(__file__).with_name(name)
        path.write_bytes(png(figure))
        print(f"{path} ({path.stat().st_size // 1024} KiB)")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/figures.py RUNS")
    main(sys.argv[1])
