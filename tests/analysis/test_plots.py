"""Figures: what is drawn agrees with the data, kinds are never mixed, missing data says so."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest
from matplotlib.figure import Figure
from recorded_runs import Recorder, clearing_run, quick_grid, solved_run

from analysis.plots.cache import reuse_after_clear
from analysis.plots.costs import pair_label, paired_differences, seconds_by_arm, tokens_by_arm
from analysis.plots.outcomes import done_by_solved, hidden_tests
from analysis.plots.scoreboard import VERDICTS, scoreboard
from analysis.plots.style import PARTS, PlotError, folded, png
from analysis.plots.window import window_use
from analysis.report.figures import comparable, telling_runs
from analysis.tables import load, requests, runs


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    quick_grid(root)
    return root


def words(figure: Figure) -> str:
    texts = [
        t.get_text() for axes in figure.axes for t in [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
    ]
    ticks = [t.get_text() for axes in figure.axes for t in [*axes.get_xticklabels(), *axes.get_yticklabels()]]
    legends = [t.get_text() for axes in figure.axes if axes.get_legend() for t in axes.get_legend().get_texts()]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return "\n".join([*texts, *ticks, *legends, *titles])


def test_every_figure_can_be_drawn(grid: Path) -> None:
    table, asked = runs(grid), requests(grid)
    pairs = comparable(table)
    assert pairs == [
        ("part2 2K", "part2 8K"),
        ("part2 2K", "part3 2K"),
        ("part2 8K", "part3 8K"),
        ("part3 2K", "part3 8K"),
    ]
    figures = [
        reuse_after_clear(asked),
        hidden_tests(table),
        done_by_solved(table),
        tokens_by_arm(table),
        seconds_by_arm(table),
        paired_differences(table, pairs, "seconds", "seconds"),
    ]
    for figure in figures:
        pixels = matplotlib.image.imread(BytesIO(png(figure)))
        assert pixels.std() > 0.05
        assert "real run" in words(figure) or "real run" in str(figure._suptitle and figure._suptitle.get_text())


def test_the_window_figure_stacks_to_the_totals(tmp_path: Path) -> None:
    clearing_run(tmp_path)
    records = load(tmp_path)
    rows = requests(records)
    figure = window_use(rows, records.runs[0].events)
    axes = figure.axes[0]
    tops: dict[float, float] = {}
    for bar in (b for c in axes.containers for b in c):
        middle = bar.get_x() + bar.get_width() / 2
        tops[middle] = max(tops.get(middle, 0), bar.get_y() + bar.get_height())
    assert list(tops.values()) == pytest.approx(rows["total"].astype(float).tolist())
    said = words(figure)
    for expected in (
        "clear (2)",
        "cut reply (1 by the window)",
        "tests put back (1)",
        "window 2048",
        PARTS["recomputed"][2],
    ):
        assert expected in said


def test_kinds_of_cuts_are_told_apart(tmp_path: Path) -> None:
    records = load(clearing_run(tmp_path).path.parent)
    rows = requests(records)
    rows.loc[0, ["cut", "cut_kind"]] = [True, "limit"]
    rows.loc[1, ["cut", "cut_kind"]] = [True, "limit"]
    said = words(window_use(rows, records.runs[0].events))
    assert "cut reply (2 by the reply limit,\n1 by the window)" in said
    assert "sent again" not in said
    rows.loc[2, "attempt"] = 1
    assert "step (one request each, sent again where it was refused)" in words(window_use(rows))


def test_a_pair_names_what_differs_first_and_what_is_common_once() -> None:
    assert pair_label("part2 4K", "part3 4K") == "part3\nminus part2\n(4K)"
    assert pair_label("part3 4K", "part3 4K gate=none") == "part3 4K gate=none\nminus part3 4K"
    assert pair_label("a", "b") == "b\nminus a"
    assert folded("part2 32K advice=True on (n = 4)") == "part2 32K advice=True on\n(n = 4)"


def test_a_request_without_a_known_split_is_drawn_as_evaluated(tmp_path: Path) -> None:
    clearing_run(tmp_path, counts=False)
    rows = requests(tmp_path)
    assert rows["new"].isna().any()
    assert PARTS["evaluated"][2] in words(window_use(rows))


def test_several_runs_are_no_window(grid: Path) -> None:
    with pytest.raises(PlotError, match="one run"):
        window_use(requests(grid))


@pytest.mark.parametrize("draw", [hidden_tests, done_by_solved, tokens_by_arm, seconds_by_arm])
def test_kinds_are_never_mixed(tmp_path: Path, draw: object) -> None:
    solved_run(tmp_path, kind="real")
    solved_run(tmp_path, kind="scripted")
    with pytest.raises(PlotError, match="never mixed"):
        draw(runs(tmp_path))  # type: ignore[operator]
    with pytest.raises(PlotError, match="never mixed"):
        reuse_after_clear(requests(tmp_path))


def test_a_scripted_figure_says_so(tmp_path: Path) -> None:
    solved_run(tmp_path, kind="scripted")
    assert "1 scripted run)" in words(done_by_solved(runs(tmp_path)))


def test_without_a_clear_the_figure_says_so(tmp_path: Path) -> None:
    solved_run(tmp_path)
    assert "no request\nfollowed a clear" in words(reuse_after_clear(requests(tmp_path)))


def test_hidden_tests_hold_every_cell(grid: Path) -> None:
    said = words(hidden_tests(runs(grid))).splitlines()
    assert said.count("4/4") == 6
    assert said.count("2/4") == said.count("1/4") == 3
    assert said.count("3/3") == said.count("0/3") == 2


def test_ungraded_runs_are_not_drawn_as_failed(tmp_path: Path) -> None:
    solved_run(tmp_path)
    table = runs(tmp_path)
    table[["hidden_passed", "solved"]] = pd.NA
    assert "?" in words(hidden_tests(table)).splitlines()
    assert "no run was graded" in words(done_by_solved(table))


def test_arms_of_one_run_per_seed_only_are_paired(tmp_path: Path) -> None:
    solved_run(tmp_path, agent="part2", model="a")
    solved_run(tmp_path, agent="part2", model="b")
    assert comparable(runs(tmp_path)) == []


def test_the_scoreboard_shows_every_verdict() -> None:
    called = [
        {"id": f"p{i}", "wording": "w " * 90, "verdict": v, "provenance": "registered"} for i, v in enumerate(VERDICTS)
    ]
    said = words(scoreboard(called))
    for verdict in VERDICTS:
        assert verdict.replace("_", " ") in said
    assert "1 of 5 held" in said
    assert "no predictions" in words(scoreboard([]))


def test_the_telling_run_of_an_arm_is_the_one_with_most_clears(tmp_path: Path) -> None:
    clearing_run(tmp_path, seed=1)
    quiet = Recorder(tmp_path, n_ctx=2048, seed=0)
    quiet.reply("done")
    quiet.finish()
    (chosen,) = telling_runs(requests(tmp_path))
    table = runs(tmp_path).set_index("run_id")
    assert table.loc[chosen, "clears"] == 2
