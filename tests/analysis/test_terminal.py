"""The tables in the terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from recorded_runs import false_run, solved_run
from rich.console import Console

from analysis.tables import load, requests, runs
from analysis.terminal import print_tables
from harness.record.folder import RunFolder, write_json
from harness.record.summary import arm_label


def test_tables_of_each_kind_and_problems_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    false_run(tmp_path, seed=3, task="cart [bold]x")
    solved_run(tmp_path, kind="scripted")
    (solved_run(tmp_path, seed=1).path / "result.json").unlink()
    out = StringIO()
    print_tables(tmp_path, console=Console(file=out, width=160))
    text = out.getvalue()
    for expected in (
        "Outcomes (real runs)",
        "Outcomes (scripted runs)",
        "finished 1",
        "2/4*",
        "cart [bold]x",
        "1 of 1 (100 %, 21 to 100 %)",
    ):
        assert expected in text
    assert "not finished, not counted" in capsys.readouterr().err
    assert "not finished" not in text


def with_overrides(folder: RunFolder, *overrides: str) -> None:
    """As if the run's cell had held these overrides too."""
    manifest, row = folder.manifest(), folder.result()
    manifest["cell"] += overrides
    write_json(folder.path / "manifest.json", manifest)
    write_json(folder.path / "result.json", row | {"arm": arm_label(row["agent"], row["n_ctx"], manifest["cell"])})


def test_names_of_arms_leave_out_what_all_share(tmp_path: Path) -> None:
    common = ("agent.max_steps=8", "server.max_tokens=512", "task.path=tasks/mine")
    with_overrides(solved_run(tmp_path, seed=0), *common, "protocol=native")
    with_overrides(solved_run(tmp_path, seed=1), *common, "protocol=text_json")
    with_overrides(solved_run(tmp_path, seed=2, agent="part3"), *common, "protocol=native", "finish.gate=none")
    recorded, short = load(tmp_path), load(tmp_path, short_arms=True)
    assert set(runs(short)["arm"]) == {
        "part2 4K protocol=native",
        "part2 4K protocol=text_json",
        "part3 4K gate=none protocol=native",
    }
    assert set(requests(short)["arm"]) == set(runs(short)["arm"])
    names = set(runs(recorded)["arm"])
    assert "part2 4K agent.max_steps=8 protocol=native server.max_tokens=512" in names
    assert len(names) == 3


def test_keys_that_end_alike_stay_whole(tmp_path: Path) -> None:
    with_overrides(solved_run(tmp_path, seed=0), "server.kind=a", "sandbox.kind=b")
    with_overrides(solved_run(tmp_path, seed=1), "server.kind=c", "sandbox.kind=b")
    assert set(runs(load(tmp_path, short_arms=True))["arm"]) == {"part2 4K server.kind=a", "part2 4K server.kind=c"}


def test_recorded_names_stay_where_one_is_not_what_its_manifest_gives(tmp_path: Path) -> None:
    with_overrides(solved_run(tmp_path, seed=0), "agent.max_steps=8")
    odd = solved_run(tmp_path, seed=1)
    write_json(odd.path / "result.json", odd.result() | {"arm": "part2 4K odd"})
    assert set(runs(load(tmp_path, short_arms=True))["arm"]) == {"part2 4K agent.max_steps=8", "part2 4K odd"}


def test_into_a_pipe_tables_are_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        solved_run(tmp_path, seed=seed)
    print_tables(tmp_path)
    out = capsys.readouterr().out
    assert 100 < max(map(len, out.splitlines())) <= 140
    assert "3 of 3 (100 %, 44 to 100 %)" in out  # not folded
