"""Tables from run folders: columns, types, damage, re-derivation, files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from recorded_runs import Recorder, clearing_run, false_run, quick_grid, solved_run

from analysis.tables import COLUMNS, TABLES, all_tables, clears, commands, load, requests, runs, tests
from analysis.tables.write import rows_of, write_tables
from harness.record.folder import RecordError


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    quick_grid(root)
    return root


def test_every_table_has_exactly_its_documented_columns_and_types(grid: Path) -> None:
    for name, table in all_tables(grid).items():
        assert list(table.columns) == list(TABLES[name]) == list(COLUMNS[name])
        assert {c: str(d) for c, d in table.dtypes.items()} == {c: column.dtype for c, column in TABLES[name].items()}
        assert len(table) > 0
        assert table.attrs["problems"] == []


def test_the_run_table_is_the_results(grid: Path) -> None:
    table = runs(grid, check=True)
    assert table.attrs["differences"] == []
    assert sorted(table["arm"].unique()) == ["part2 2K", "part2 8K", "part3 2K", "part3 8K"]
    assert len(table) == 12


def test_a_result_edited_by_hand_is_found(tmp_path: Path) -> None:
    folder = false_run(tmp_path)
    row = folder.result() | {"solved": True}
    (folder.path / "result.json").write_text(json.dumps(row))
    table = runs(tmp_path, check=True)
    assert table.attrs["differences"] == [
        {"run_id": row["run_id"], "column": "solved", "stored": True, "derived": False}
    ]


def test_the_phenomena_of_a_clearing_run(tmp_path: Path) -> None:
    clearing_run(tmp_path)
    row = runs(tmp_path).iloc[0]
    expected = {
        "ended_how": "step_limit", "declared_done": False, "solved": False, "false_completion": False, "clears": 2,
        "cleared_messages": 4, "cleared_nothing": 0, "post_clear_requests": 2, "first_clear_after_cut": False,
        "truncated_answers": 1, "cut_by_window": 1, "cut_by_limit": 0, "truncated_as_done": 0, "reread_cleared": True,
        "rereads_of_cleared": 2, "left_repo": True, "guessed_paths": 1, "prompts": 1, "auto_run": 0, "guard_restores": 1,
        "test_file_rewritten_whole": True, "edit_file_on_tests": False, "worse_than_start": True, "hidden_passed": 1,
    }  # fmt: skip
    assert {k: row[k] for k in expected} == expected
    for unknown in (
        "outside_path_flagged",
        "peak_gpu_bytes",
        "plan_open_items",
        "peak_then_lost",
        "finish_check_passed",
    ):
        assert pd.isna(row[unknown]), unknown
    parts = row["prompt_seconds"] + row["writing_seconds"] + row["tool_seconds"] + row["harness_seconds"]
    assert parts == pytest.approx(row["seconds"], abs=0.001)
    assert row["harness_seconds"] > 0


def test_a_cut_reply_taken_as_done_is_a_false_completion(tmp_path: Path) -> None:
    false_run(tmp_path)
    row = runs(tmp_path).iloc[0]
    expected = {
        "ended_how": "finished", "declared_done": True, "solved": False, "false_completion": True, "false_finish": True,
        "truncated_as_done": 1, "answer_cut_at_window_end": True, "clears": 0, "finish_check": 1, "finish_check_passed": True,
        "untested_completion": False, "contradicted_completion": False, "files_changed": 0,
    }  # fmt: skip
    assert {k: row[k] for k in expected} == expected
    assert pd.isna(row["first_clear_after_cut"])
    assert pd.isna(row["post_clear_min_pct"])


def test_a_solved_run(tmp_path: Path) -> None:
    solved_run(tmp_path)
    row = runs(tmp_path).iloc[0]
    assert row["solved"]
    assert not row["false_completion"]
    assert row["ran_pytest_itself"]
    assert row["amplification"] == 1.0
    assert row["steps"] == row["requests"] == 4
    assert row["idle_steps"] == 1


def test_without_a_gate_there_is_no_finish_check_and_no_time_for_it(tmp_path: Path) -> None:
    run = Recorder(tmp_path, gate="none")
    run.reply("done")
    run.events.emit("finish_check", step=0, gate="none", passed=True, exit_code=None, last_line="", output="", ms=None)
    run.finish()
    row = runs(tmp_path).iloc[0]
    assert row["finish_check"] == 0
    assert pd.isna(row["finish_check_passed"])
    assert row["tool_seconds"] == 0
    assert row["untested_completion"]


def test_request_rows_add_up(grid: Path) -> None:
    table = requests(grid)
    assert (table["prompt"] == table["reused"] + table["evaluated"]).all()
    assert (table["evaluated"] == table["new"] + table["recomputed"]).all()
    assert (table["log_matches"]).all()
    sums = table.groupby("run_id")["evaluated"].sum()
    for row in runs(grid).itertuples():
        assert sums[row.run_id] == row.evaluated_tokens


def test_clears_carry_the_next_request(tmp_path: Path) -> None:
    clearing_run(tmp_path)
    first, second = clears(tmp_path).to_dict("records")
    asked = requests(tmp_path)
    after = asked[asked["after_clear"]].to_dict("records")
    assert [first["recomputed"], second["recomputed"]] == [r["recomputed"] for r in after]
    assert first["steps_to_next"] == second["step"] - first["step"] == 3
    assert not first["thrash"]
    assert pd.isna(second["steps_to_next"])


def test_commands_and_tests(tmp_path: Path) -> None:
    clearing_run(tmp_path)
    (row,) = commands(tmp_path).to_dict("records")
    assert row["command"] == "cd /repo && ls"
    assert (row["verdict"], row["answer"], row["exit_code"], row["outside"], row["guess"]) == (
        "asks",
        "yes",
        1,
        True,
        True,
    )
    graded = tests(tmp_path)
    assert graded.groupby("set")["passed"].sum().to_dict() == {"hidden": 1, "visible": 3, "visible_left": 3}


@pytest.mark.parametrize("damaged", ["manifest.json", "events.jsonl", "grading.json", "result.json"])
def test_a_damaged_folder_is_named_and_left_out(tmp_path: Path, damaged: str) -> None:
    solved_run(tmp_path, seed=0)
    broken = solved_run(tmp_path, seed=1)
    file = broken.path / damaged
    file.write_bytes(b"\x00not json\n" + file.read_bytes()[:40])
    for name, table in all_tables(tmp_path).items():
        assert table["run_id"].nunique() in ((1,) if name != "clears" else (0,)), name
        assert len(table.attrs["problems"]) == 1
        assert damaged in table.attrs["problems"][0]


def test_a_value_of_another_type_is_named(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    (folder.path / "result.json").write_text(json.dumps(folder.result() | {"steps": "four"}))
    table = runs(tmp_path)
    assert table.empty
    assert "column steps: 'four' is no Int64" in table.attrs["problems"][0]


def test_half_runs_are_named_and_not_counted(tmp_path: Path) -> None:
    solved_run(tmp_path, seed=0)
    half = solved_run(tmp_path, seed=1)
    (half.path / "result.json").unlink()
    table = runs(tmp_path)
    assert len(table) == 1
    assert table.attrs["problems"] == [f"{half.path}: not finished, not counted"]


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such folder"):
        runs(tmp_path / "nowhere")


def test_an_empty_folder_gives_empty_tables_with_columns(tmp_path: Path) -> None:
    for name, table in all_tables(tmp_path).items():
        assert table.empty
        assert list(table.columns) == list(TABLES[name])


def test_an_attached_server_without_log_and_timings_leaves_null(tmp_path: Path) -> None:
    folder = solved_run(tmp_path)
    lines = [json.loads(x) for x in folder.events.read_text().splitlines()]
    for event in lines:
        if event["event"] == "response":
            event["timings"] = None
    folder.events.write_text("".join(json.dumps(e) + "\n" for e in lines))
    folder.server_log.unlink()
    table = requests(tmp_path)
    assert len(table) == 4
    for column in ("reused", "evaluated", "new", "recomputed", "cause", "log_matches"):
        assert table[column].isna().all(), column
    assert table["prompt"].notna().all()  # usage still tells it
    derived = {d["column"]: d["derived"] for d in runs(tmp_path, check=True).attrs["differences"]}
    assert derived["evaluated_tokens"] is None
    assert derived["harness_seconds"] is None


def test_tables_as_files(grid: Path, tmp_path: Path) -> None:
    written = write_tables(grid, tmp_path / "out")
    assert {p.name for p in written} >= {f"{t}.{e}" for t in TABLES for e in ("csv", "json")}
    document = json.loads((tmp_path / "out" / "runs.json").read_text())
    assert document["columns"] == COLUMNS["runs"]
    assert document["rows"] == rows_of(runs(grid))
    assert document["rows"][0]["peak_gpu_bytes"] is None
    with (tmp_path / "out" / "requests.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(requests(grid))


@pytest.mark.parametrize("value", [2**63, -(2**70), 10**400], ids=["large", "small", "huge"])
def test_a_number_beyond_64_bits_is_a_problem_of_its_run(tmp_path: Path, value: int) -> None:
    folder = solved_run(tmp_path)
    path = folder.path / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"steps": value}))
    (problem,) = load(tmp_path).problems
    assert "column steps: a number of more than 64 bits is no Int64" in problem
