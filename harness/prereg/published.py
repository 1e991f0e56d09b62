"""Tables from the facts the articles state about their runs (experiments/published/data/runs.yaml).

What is stated per run stands in `runs`. What is stated only for a group stands in `groups`, one row per group. Lists of
which the text does not say which value belongs to which run stand in `any_order`: one row per value, which holds that one
fact and nothing else, so that no claim can join two facts of a run that the articles do not join.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from harness.prereg.predictions import PredictionError

# finish_check is a sentence there; own runs have a number under that name.
RENAMED = {
    "id": "run_id",
    "code_version": "agent",
    "context_tokens": "n_ctx",
    "finish_check": "finish_check_in_words",
}
NOT_COLUMNS = ("details", "derived", "source")
_IN_ANY_ORDER = "_any_order"


def published_tables(path: Path) -> dict[str, pd.DataFrame]:
    """Reads the facts and gives the tables runs, groups and any_order.

    Raises:
        PredictionError: the file is missing or does not have the form of the shipped one.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        return tables_of(document)
    except OSError as e:
        raise PredictionError(f"{path}: can't be read ({e.strerror})") from e
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as e:
        raise PredictionError(f"{path}: does not have the form of published facts (runs and groups): {e!r}") from e


def tables_of(document: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """The tables of an already loaded document."""
    runs = [
        {RENAMED.get(key, key): value for key, value in run.items() if key not in NOT_COLUMNS}
        for run in document["runs"]
    ]
    groups, any_order = [], []
    for group in document["groups"]:
        facts = group["facts"]
        scalars = {key: value for key, value in facts.items() if not isinstance(value, (list, dict))}
        groups.append({"group": group["id"], **scalars})
        for key, values in facts.items():
            if key.endswith(_IN_ANY_ORDER):
                fact = key.removesuffix(_IN_ANY_ORDER)
                any_order += [{"group": group["id"], "fact": fact, fact: value} for value in values]
    return {name: _frame(rows) for name, rows in (("runs", runs), ("groups", groups), ("any_order", any_order))}


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    # Object columns keep a null a null and a whole number whole.
    frame = pd.DataFrame(rows, dtype=object)
    return frame.where(frame.notna(), None)
