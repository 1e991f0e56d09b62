"""Export to Inspect's log format: the mapping, and, where inspect-ai is installed, its own reader of what was written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import command
from recorded_runs import LONG, Recorder, clearing_run, false_run, solved_run

from analysis.export_inspect import export, logs
from analysis.export_inspect.messages import message_of
from analysis.tables import load
from harness.record.conversation import conversations
from harness.record.events import read_events


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
    assert "cleared or changed at step" in result["metadata"]["marks"]
    dropped = [m for m in sample["messages"] if "cut by the window, dropped" in m["metadata"].get("marks", "")]
    assert [m["role"] for m in dropped] == ["assistant"]
    told = [e["data"].split("\n")[0] for e in sample["events"] if e["event"] == "info"]
    assert sum("clear:" in what for what in told) == 2
    assert any("test guard" in what for what in told)
    assert told[-1].endswith("stop: step_limit**")
    row = folder.result()
    usage = sample["model_usage"]["calledshot/qwen2.5-coder-1.5b"]
    assert usage["input_tokens"] + usage["input_tokens_cache_read"] == row["prompt_tokens"]
    assert usage["total_tokens"] == row["prompt_tokens"] + row["generated_tokens"]


def test_every_request_shows_what_was_sent_and_every_call_its_result(tmp_path: Path) -> None:
    folder = clearing_run(tmp_path)
    events = list(read_events(folder.events))
    (log,) = exported(tmp_path).values()
    shown = log["samples"][0]["events"]
    asked = [e for e in shown if e["event"] == "model"]
    sent = [[m["content"] for m in messages] for _, messages in conversations(events)]
    assert [[m["content"] for m in e["input"]] for e in asked] == sent
    assert any("[cleared]" in contents for contents in sent)
    replies = [e for e in events if e["event"] == "response"]
    for event, reply in zip(asked, replies, strict=True):
        usage = event["output"]["usage"]
        assert usage["input_tokens"] + usage["input_tokens_cache_read"] == reply["usage"]["prompt_tokens"]
        assert event["metadata"]["step"] == reply["step"]
        assert event["config"] == {"temperature": 0.6, "seed": 0}
        assert [t["name"] for t in event["tools"]] == ["read_file", "write_file", "edit_file", "bash"]
    assert [e["output"]["choices"][0]["stop_reason"] for e in asked].count("model_length") == 1
    calls = [e for e in events if e["event"] == "call"]
    made = [e for e in shown if e["event"] == "tool"]
    assert [(e["id"], e["function"], e["result"]) for e in made] == [(c["id"], c["name"], c["result"]) for c in calls]
    told = [e["data"] for e in shown if e["event"] == "info"]
    assert "**step 4: reply cut by the window, dropped**" in told
    assert log["samples"][0]["limit"] == {"type": "turn", "limit": 30}
    # By the clock: a request began when it was sent, before its reply and the call that came of it.
    assert [e["working_start"] for e in asked] == sorted(e["working_start"] for e in asked)


def test_a_refused_request_has_an_error_and_no_reply(tmp_path: Path) -> None:
    run = Recorder(tmp_path, n_ctx=1024)
    run.reply("look", ("read_file", {"path": "cart.py"}), LONG * 6)
    run.reply("never sent")
    run.finish("context_exhausted", hidden=(1, 4))
    (log,) = exported(tmp_path).values()
    (sample,) = log["samples"]
    refused = [e for e in sample["events"] if e["event"] == "model"][-1]
    assert refused["output"]["choices"] == []
    assert refused["error"] == "exceeds the available context size"
    assert "usage" not in refused["output"]
    assert sample["limit"] == {"type": "context", "limit": 1024}


def test_content_in_parts_and_roles_of_other_agents_are_kept_in_words() -> None:
    parts = [{"type": "text", "text": "look at this"}, {"type": "image_url", "image_url": {"url": "data:…"}}]
    assert message_of({"role": "user", "content": parts}) == {"role": "user", "content": "look at this\n[image_url]"}
    assert message_of({"role": "developer", "content": "be brief"})["role"] == "system"


def test_text_with_code_fences_stays_one_block(tmp_path: Path) -> None:
    run = Recorder(tmp_path)
    run.reply("x")
    run.events.emit("note", step=0, kind="odd", text="````\nnot the end\n````")
    run.finish()
    (log,) = exported(tmp_path).values()
    (note,) = (e["data"] for e in log["samples"][0]["events"] if "note: odd" in str(e.get("data")))
    assert note == "**step 0: note: odd**\n\n`````\n````\nnot the end\n````\n`````"


def test_a_second_export_with_more_seeds_replaces_the_first(tmp_path: Path) -> None:
    solved_run(tmp_path, seed=1)
    before = list(logs(load(tmp_path)))
    solved_run(tmp_path, seed=2)
    assert list(logs(load(tmp_path))) == before


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
    refused = Recorder(tmp_path / "runs", n_ctx=1024, kind="scripted")
    refused.reply("look", ("read_file", {"path": "cart.py"}), LONG * 6)
    refused.reply("never sent")
    refused.finish("context_exhausted", hidden=(1, 4))
    written, left_out = export(tmp_path / "runs", tmp_path / "logs")
    assert left_out == []
    assert len(written) == 3
    assert {Path(i.name.removeprefix("file://")).name for i in inspect_log.list_eval_logs(str(tmp_path / "logs"))} == {
        p.name for p in written
    }
    mapped = logs(load(tmp_path / "runs", short_arms=True))
    for path in written:
        read = inspect_log.read_eval_log(str(path), resolve_attachments=True)
        assert read.status == "success"
        assert len(read.samples) == len(mapped[path.name]["samples"])
        for sample, ours in zip(read.samples, mapped[path.name]["samples"], strict=True):
            assert [m.role for m in sample.messages] == [m["role"] for m in ours["messages"]]
            assert sample.scores["solved"].value == ours["scores"]["solved"]["value"]
            assert [e.event for e in sample.events] == [e["event"] for e in ours["events"]]
            for event, our in zip(sample.events, ours["events"], strict=True):
                if event.event == "model":
                    assert [m.text for m in event.input] == [m["content"] for m in our["input"]]
                    assert event.error == our["error"]
                    reasons = [c["stop_reason"] for c in our["output"]["choices"]]
                    assert [c.stop_reason for c in event.output.choices] == reasons


def test_inspects_own_commands_take_the_logs(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", exc_type=ImportError)
    clearing_run(tmp_path / "runs")
    false_run(tmp_path / "runs", seed=3)
    written, _ = export(tmp_path / "runs", tmp_path / "logs")
    inspect = [sys.executable, "-m", "inspect_ai"]
    for path in written:
        dumped = subprocess.run([*inspect, "log", "dump", str(path)], capture_output=True, text=True, check=True)
        assert json.loads(dumped.stdout)["status"] == "success"
    bundle = tmp_path / "bundle"
    subprocess.run(
        [*inspect, "view", "bundle", "--log-dir", str(tmp_path / "logs"), "--output-dir", str(bundle)],
        capture_output=True,
        check=True,
    )
    assert {p.name for p in (bundle / "logs").glob("*.eval")} == {p.name for p in written}
