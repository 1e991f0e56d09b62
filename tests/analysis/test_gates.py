"""Finish gates scored on whole runs that the double played."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from analysis.gates import GATES, GateError, GateScores, score_gates
from harness.cli.main import app
from harness.paths import shipped
from harness.record.folder import RunFolder, write_json
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.run import execute

OTHER_HALF = "- calls: [{edit_file: {path: cart.py, old: price + price * percent, new: price - price * percent}}]\n"
HALF = "- calls: [{edit_file: {path: cart.py, old: 'sum(prices[1:])', new: sum(prices)}}]\n"
SHOWN_TESTS_ONLY = (
    '- calls: [{write_file: {path: cart.py, content: "def total(prices):\\n    return 10\\n\\n\\n'
    'def discounted(price, percent):\\n    return 180\\n"}}]\n'
)
DONE = "- say: done\n"
PYTEST = "- calls: [{bash: {command: python -m pytest -q}}]\n"

Player = Callable[..., RunFolder]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Player:
    folder = tmp_path_factory.mktemp("study")

    def one(name: str, steps: str, *overrides: str) -> RunFolder:
        file = folder / f"{name}.yaml"
        file.write_text(f"about: {name}\nsteps:\n{steps}")
        asked = ["agent=part3", "task=cart", "server=scripted", f"server.scenario={file}", *overrides]
        (plan,) = prepare(Place(shipped("conf").parent, folder / "runs" / name), asked, False).plans
        assert execute(plan).failure is None
        return plan.folder

    return one


def moments(scores: GateScores) -> list[tuple]:
    (run,) = scores.runs
    return [(m.step, m.solved, tuple(m.believed[g] for g in GATES), m.pytest) for m in run.moments]


@pytest.fixture(scope="module")
def handed_back(play: Player) -> RunFolder:
    """Done on the untouched repo, done after half of the repair, done at last with the tests run by the agent."""
    return play("handed_back", DONE + HALF + DONE + OTHER_HALF + PYTEST + DONE)


def test_a_run_that_was_handed_back(handed_back: RunFolder) -> None:
    scores = score_gates([handed_back.path])
    assert moments(scores) == [
        (0, False, (True, False, False), "recorded"),
        (2, False, (True, False, False), "recorded"),
        (5, True, (True, True, True), "recorded"),
    ]
    (run,) = scores.runs
    assert [getattr(run.stop(g), "step", None) for g in GATES] == [0, 5, 5]
    none, tests_pass, evidence = scores.rows()
    assert (none["believed_unsolved"], none["believed_solved"], none["earlier"], none["right"]) == (2, 1, 1, 1 / 3)
    for row in (tests_pass, evidence):
        assert (row["returned_unsolved"], row["believed_solved"], row["right"], row["beyond"]) == (2, 1, 1.0, 0)
        assert (row["stopped"], row["stopped_solved"], row["earlier"]) == (1, 1, 0)


def test_what_the_run_did_not_test_is_run_on_the_rebuilt_tree(play: Player) -> None:
    folder = play("untested", HALF + DONE, "finish=none")
    scores = score_gates([folder.path])
    assert moments(scores) == [(1, False, (True, False, False), "run")]
    assert [row["beyond"] for row in scores.rows()] == [0, 1, 1]
    assert [row["stopped"] for row in scores.rows()] == [1, 0, 0]


def test_tests_that_pass_are_not_a_solved_task(play: Player) -> None:
    folder = play("shown_tests_only", SHOWN_TESTS_ONLY + PYTEST + DONE, "finish=none")
    scores = score_gates([folder.path], ["evidence"])
    (run,) = scores.runs
    assert [(m.solved, m.believed, m.pytest) for m in run.moments] == [(False, {"evidence": True}, "not needed")]
    assert scores.rows()[0]["believed_unsolved"] == 1


def test_evidence_wants_new_tests_where_the_task_asks_and_a_change(play: Player) -> None:
    folder = play("todo_untouched", DONE, "finish=tests_pass", "task=todo")
    assert moments(score_gates([folder.path])) == [(0, False, (True, True, False), "recorded")]


def test_without_states_the_trees_are_graded_again(handed_back: RunFolder, tmp_path: Path) -> None:
    copy = RunFolder(tmp_path / "run")
    shutil.copytree(handed_back.path, copy.path)
    graded = copy.grading()
    write_json(copy.path / "grading.json", {k: v for k, v in graded.items() if k not in ("start", "states")})
    assert score_gates([copy.path]).runs == score_gates([handed_back.path]).runs


def test_a_run_that_never_said_done_has_no_moment(play: Player) -> None:
    folder = play("never", "- {calls: [{list_files: {}}], repeat: forever}\n", "agent.max_steps=2")
    scores = score_gates([folder.path])
    assert scores.runs[0].moments == ()
    assert {(r["runs"], r["said_done"], r["right"], r["stopped"]) for r in scores.rows()} == {(1, 0, None, 0)}


def test_another_task_and_a_damaged_record_are_left_out_with_a_line(handed_back: RunFolder, tmp_path: Path) -> None:
    for name in ("other", "damaged", "odd"):
        shutil.copytree(handed_back.path, tmp_path / name)
    manifest = json.loads((tmp_path / "other" / "manifest.json").read_text())
    manifest["task"]["digest"] = "0" * 64
    write_json(tmp_path / "other" / "manifest.json", manifest)
    (tmp_path / "damaged" / "events.jsonl").write_text("x\n{}\n")
    write_json(tmp_path / "odd" / "manifest.json", {"task": manifest["task"] | {"path": 1}})
    scores = score_gates([tmp_path])
    assert scores.runs == []
    assert [p.split(":")[0] for p in scores.problems] == ["damaged", "odd", "other"]
    assert scores.rows() == []


def test_a_tree_that_was_too_large_to_record_is_not_judged(play: Player) -> None:
    command = "python -c \"open('big.bin', 'wb').write(bytes(1100000))\""
    folder = play("large", f"- calls: [{{bash: {{command: {json.dumps(command)}}}}}]\n" + DONE, "finish=none")
    assert moments(score_gates([folder.path])) == [(1, None, (True, None, None), "not known")]
    assert [r["unknown"] for r in score_gates([folder.path]).rows()] == [1, 1, 1]


def test_the_command(handed_back: RunFolder) -> None:
    shown = CliRunner().invoke(app, ["gates", str(handed_back.path), "--gate", "evidence", "--json"])
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    assert [r["gate"] for r in document["gates"]] == ["evidence"]
    assert document["runs"][0]["stops"] == {"evidence": {"step": 5, "solved": True}}
    table = CliRunner().invoke(app, ["gates", str(handed_back.path)])
    assert table.exit_code == 0
    assert "1 runs, scripted" in table.stdout
    assert "tests_pass" in table.stdout


@pytest.mark.parametrize(
    ("gates", "words"), [(["every"], "known are none, tests_pass, evidence"), (GATES, "no finished run here")]
)
def test_wrong_requests_are_one_line(tmp_path: Path, gates: list[str], words: str) -> None:
    with pytest.raises(GateError, match=words):
        score_gates([tmp_path], gates)
