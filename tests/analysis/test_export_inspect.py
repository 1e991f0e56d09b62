"""Export to Inspect's log format: the mapping, and, where inspect-ai is installed, its own reader of what was written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from commands import command
from recorded_runs import Recorder, clearing_run, false_run, solved_run

from analysis.export_inspect import export, logs
from analysis.tables import load


def exported(root: Path) -> dict[str, dict[str, Any]]:
    """The logs by the arm they are of."""
    return {log["eval"]["task_args"]["arm"]: log for log in logs(load(root)).values()}


def test_one_log_for_each_arm_one_epoch_for_each_run(tmp_path: Path) -> None:
    for seed in (4, 7):
        solved_run(tmp_path, seed=seed)
    false_run(tmp_path, n_ctx=2048)
    found = exported(tmp_path)
    assert set(found) == {"part2 4K", "part2 2K"}
    log = found["part2 4K"]
    assert [(s["id"], s["epoch"], s["metadata"]["seed"]) for s in log["samples"]] == [("cart", 1, 4), ("cart", 2, 7)]
    assert log["eval"]["config"]["epochs"] == log["results"]["total_samples"] == 2
    assert [s["metrics"] for s in log["results"]["scores"] if s["name"] == "solved"] == [
        {"accuracy": {"name": "accuracy", "value": 1.0}}
    ]
    (false,) = found["part2 2K"]["samples"]
    assert {k: v["value"] for k, v in false["scores"].items()} == {
        "solved": "I",
        "hidden_tests": 0.5,
        "false_completion": 1,
    }
    assert false["output"]["choices"][0]["stop_reason"] == "model_length"


def test_conversation_with_cut_replies_clears_and_calls(tmp_path: Path) -> None:
    folder = clearing_run(tmp_path)
    (log,) = exported(tmp_path).values()
    (sample,) = log["samples"]
    assert [m["role"] for m in sample["messages"][:4]] == ["system", "user", "assistant", "tool"]
    (call,) = sample["messages"][2]["tool_calls"]
    assert (call["function"], call["arguments"]) == ("read_file", {"path": "cart.py"})
    result = sample["messages"][3]
    assert (result["tool_call_id"], result["function"]) == (call["id"], "read_file")
    assert result["metadata"]["step"] == 0
    assert any(mark.startswith("cleared or changed at step") for mark in result["metadata"]["marks"])
    dropped = [m for m in sample["messages"] if "cut by the window, dropped" in m["metadata"]["marks"]]
    assert [m["role"] for m in dropped] == ["assistant"]
    happened = [e["data"]["what"] for e in sample["events"]]
    assert sum("clear" in what for what in happened) == 2
    assert any("test guard" in what for what in happened)
    assert happened[-1].endswith("stop: step_limit")
    row = folder.result()
    usage = sample["model_usage"]["calledshot/qwen2.5-coder-1.5b"]
    assert usage["input_tokens"] + usage["input_tokens_cache_read"] == row["prompt_tokens"]
    assert usage["total_tokens"] == row["prompt_tokens"] + row["generated_tokens"]


def test_arguments_that_are_no_object_are_kept(tmp_path: Path) -> None:
    run = Recorder(tmp_path)
    run.reply("a", ("bash", {"command": "ls"}), "x")
    run.finish()
    text = run.folder.events.read_text()
    run.folder.events.write_text(text.replace('"arguments": "{\\"command\\": \\"ls\\"}"', '"arguments": "[1, "'))
    (log,) = exported(tmp_path).values()
    (call,) = log["samples"][0]["messages"][2]["tool_calls"]
    assert call["arguments"] == {"text": "[1, "}
    assert call["parse_error"].startswith("not JSON")


def test_without_inspect_one_line_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    solved_run(tmp_path / "runs")
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    assert command("export", "inspect", str(tmp_path / "runs"), str(tmp_path / "out")) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "called-shot[inspect]" in error
    assert not (tmp_path / "out").exists()


def test_inspect_reads_what_was_written(tmp_path: Path) -> None:
    inspect_log = pytest.importorskip("inspect_ai.log", exc_type=ImportError)
    for seed in range(2):
        solved_run(tmp_path / "runs", seed=seed)
    clearing_run(tmp_path / "runs")
    written, left_out = export(tmp_path / "runs", tmp_path / "logs")
    assert left_out == []
    assert len(written) == 2
    assert {Path(i.name.removeprefix("file://")).name for i in inspect_log.list_eval_logs(str(tmp_path / "logs"))} == {
        p.name for p in written
    }
    mapped = logs(load(tmp_path / "runs", short_arms=True))
    for path in written:
        read = inspect_log.read_eval_log(str(path))
        assert read.status == "success"
        assert len(read.samples) == len(mapped[path.name]["samples"])
        for sample, ours in zip(read.samples, mapped[path.name]["samples"], strict=True):
            assert [m.role for m in sample.messages] == [m["role"] for m in ours["messages"]]
            assert sample.scores["solved"].value == ours["scores"]["solved"]["value"]
            assert len(sample.events) == len(ours["events"])
