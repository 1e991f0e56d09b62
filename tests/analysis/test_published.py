"""The articles' figures: their run table, and the cache numbers from a fixture of requests with the published properties."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml
from recorded_runs import clearing_run

from analysis.plots.cache import clear_cost
from analysis.tables import runs
from analysis.tables.arms import summaries
from analysis.tables.columns import RUN
from analysis.tables.published import published_runs
from harness.prereg.predictions import PredictionError

DATA = Path(__file__).parents[2] / "experiments" / "published" / "data" / "runs.yaml"

# Rows per request are not published, only these figures of the three part-3 runs at 8K: of 26 requests after a clear 24
# evaluated over half (lowest 45 %, median 85 %), of 47 others 40 under a quarter. These shares have those properties.
POST_CLEAR = [45.0, 49.5, *[60.0 + i for i in range(10)], 84.0, 86.0, *[88.0 + i for i in range(12)]]
OTHERS = [*[2.0 + 0.5 * i for i in range(40)], 30.0, 45.0, 60.0, 75.0, 100.0, 100.0, 100.0]


def rows() -> pd.DataFrame:
    shares = POST_CLEAR + OTHERS
    after = [True] * len(POST_CLEAR) + [False] * len(OTHERS)
    table = pd.DataFrame({"evaluated_pct": shares, "after_clear": after})
    return table.astype({"evaluated_pct": "Float64", "after_clear": "boolean"})


def test_the_published_cache_figures_come_out() -> None:
    cost = clear_cost(rows())
    assert (cost.post_clear, cost.post_clear_over_half) == (26, 24)
    assert (cost.post_clear_min_pct, cost.post_clear_median_pct) == (45.0, 85.0)
    assert (cost.others, cost.others_under_quarter) == (47, 40)


def test_exactly_half_is_not_over_half_and_a_quarter_not_under() -> None:
    table = (
        rows()
        .head(2)
        .assign(evaluated_pct=pd.array([50.0, 25.0], "Float64"), after_clear=pd.array([True, False], "boolean"))
    )
    cost = clear_cost(table)
    assert (cost.post_clear_over_half, cost.others_under_quarter) == (0, 0)


def test_unknown_shares_are_left_out() -> None:
    table = rows()
    table.loc[0, "evaluated_pct"] = pd.NA
    assert clear_cost(table).post_clear == 25


def test_every_fact_that_a_run_folder_can_answer_is_a_column_of_own_runs(tmp_path: Path) -> None:
    """The names of the facts as the data lists them, so that one claim judges both."""
    names = set(yaml.safe_load(DATA.read_text(encoding="utf-8"))["columns"])
    assert names - set(RUN) == set()
    folder = clearing_run(tmp_path)
    own = runs(folder.path)
    known = {name for name in names if own[name].notna().all()}
    # Not asked in this run: no decision model, no finish check.
    assert names - known == {"outside_path_flagged", "finish_check_passed"}
    assert own["clears_at_least"].tolist() == own["clears"].tolist() == [2]
    assert runs(folder.path, check=True).attrs["differences"] == []


def test_the_articles_runs_in_our_columns() -> None:
    table = published_runs(DATA)
    assert {c: str(d) for c, d in table.dtypes.items()} == {c: column.dtype for c, column in RUN.items()}
    assert len(table) == 25
    assert set(table["kind"]) == {"published"}
    by_id = table.set_index("run_id")
    assert by_id.loc[["B4", "B5", "B6"], "evaluated_tokens"].tolist() == [14689, 71820, 15832]
    assert by_id.loc[["B1", "B2", "B3"], "false_completion"].tolist() == [True, True, True]
    assert by_id.loc["C2", "hidden_passed"] == 0
    assert by_id["recomputed_tokens"].isna().all()
    assert pd.isna(by_id.loc["A1", "steps"])


def test_the_articles_arms() -> None:
    found = {s.arm: s for s in summaries(published_runs(DATA))}
    assert (found["part3 8K"].solved.estimate, found["part3 8K"].solved.n) == (1.0, 3)
    assert found["clear_only 4K"].false_completion.estimate == 1.0
    assert found["part2 4K"].solved.estimate is None  # which run is which is not stated
    assert found["part3 8K"].evaluated.most == 71820


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PredictionError, match="can't be read"):
        published_runs(tmp_path / "runs.yaml")
