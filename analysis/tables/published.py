"""The articles' own results as a run table, so that they stand beside own runs; what the text does not state is null."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.tables.columns import RUN
from analysis.tables.frame import frame
from harness.prereg.published import published_tables
from harness.record.summary import arm_label

KIND = "published"


def published_runs(path: Path) -> pd.DataFrame:
    """One row per run of the articles, of kind `published`, with the columns and types of the run table.

    Concluded here and nowhere stated as such: declared_done (the loop ended by itself), solved (all hidden tests passed) and
    false_completion from these two. The fact `finish_check` is prose in the articles and a count here, so it is left null.

    Raises:
        harness.prereg.predictions.PredictionError: the file is missing or has another form.
    """
    return frame((_row(r) for r in published_tables(path)["runs"].to_dict("records")), RUN)


def _row(stated: dict[Any, Any]) -> dict[str, Any]:
    row = {str(k): v for k, v in stated.items() if k in RUN and k != "finish_check"}
    for column in ("experiment", "run_id"):
        if row.get(column) is not None:
            row[column] = str(row[column])
    passed, total = row.get("hidden_passed"), row.get("hidden_total")
    solved = None if passed is None or total is None else passed == total
    ended = row.get("ended_how")
    done = None if ended is None else ended == "finished"
    false = None if solved is None or done is None else done and not solved
    window = row.get("n_ctx")
    return row | {
        "kind": KIND,
        "arm": arm_label(row.get("agent"), window, None),
        "declared_done": done,
        "solved": solved,
        "false_completion": false,
    }
