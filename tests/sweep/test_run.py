"""Whole runs against the double: the record is complete, a finished run is not run again, a broken one is kept and goes on."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.record.conversation import conversations
from harness.record.events import read_events
from harness.record.folder import canonical, run_id
from harness.record.summary import summarise
from harness.sweep.app import prepare, run
from harness.sweep.departures import departures
from harness.sweep.run import FAILED, execute


def without_times(folder: Path) -> list[dict]:
    """The events of a run without what a clock gave."""

    def plain(value):
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k not in TIMED}
        return [plain(v) for v in value] if isinstance(value, list) else value

    return [plain(e) for e in read_events(folder / "events.jsonl") if e["event"] != "resources"]


TIMED = ("t", "ms")


def test_one_run_leaves_a_whole_record(scripted):
    (plan,) = scripted("agent=part3", "seed=1")
    outcome = execute(plan)
    assert outcome.failure is None
    row = outcome.result
    assert (row["solved"], row["declared_done"], row["false_completion"]) == (True, True, False)
    assert (row["steps"], row["stop_reason"], row["kind"]) == (5, "declared_done", "scripted")
    assert (row["hidden_passed"], row["visible_passed"], row["visible_left_passed"]) == (row["hidden_total"], 2, 2)
    assert row["recomputed_tokens"] == 0
    assert row["new_tokens"] == row["evaluated_tokens"] > 0
    names = {p.name for p in outcome.folder.iterdir()}
    assert {"manifest.json", "events.jsonl", "server.log", "workspace.diff", "grading.json", "result.json"} <= names
    assert "copy" not in names
    assert "+    return sum(prices)" in (outcome.folder / "workspace.diff").read_text()
    events = list(read_events(plan.folder.events))
    assert summarise(plan.folder.manifest(), events, plan.folder.grading()) == row
    sent = list(conversations(events))
    assert [len(messages) for _, messages in sent] == [e["n_messages"] for e, _ in sent] == [2, 4, 6, 8, 10]


def test_the_run_id_is_the_hash_of_what_can_change_the_result(scripted, fixes_cart):
    (one,) = scripted("seed=1")
    assert one.run_id == run_id(one.identity)
    same = ["server.port=4711", "server.threads=1", "server.start_timeout_s=3", "server.record_tape=true"]
    assert {scripted("seed=1", o)[0].run_id for o in same} == {one.run_id}
    other = [
        "seed=2",
        "server.n_ctx=4096",
        "agent=part2",
        "context.keep=3",
        "sandbox.processes=64",
        "server.max_tokens=9",
    ]
    assert one.run_id not in {scripted("seed=1", o)[0].run_id for o in other}
    moved = fixes_cart.with_name("moved.yaml")
    moved.write_bytes(fixes_cart.read_bytes())
    assert scripted("seed=1", scenario=moved)[0].run_id == one.run_id
    moved.write_text(moved.read_text() + "# changed\n")
    assert scripted("seed=1", scenario=moved)[0].run_id != one.run_id
    assert canonical(one.identity) == canonical(json.loads(canonical(one.identity)))


def test_two_runs_of_one_cell_give_the_same_events_times_aside(scripted, tmp_path):
    (plan,) = scripted("agent=part3", "seed=3")
    first = execute(plan).folder
    kept = first.rename(tmp_path / "kept")
    second = execute(plan).folder
    assert without_times(kept) == without_times(second)


def test_a_sweep_runs_what_is_missing_and_only_that(place, fixes_cart, capsys):
    asked = ["server=scripted", f"server.scenario={fixes_cart}", "task=cart", "seed=0,1"]
    request, outcomes = run(place, asked, False, lambda r: None)
    assert [o.failure for o in outcomes] == [None, None]
    stamps = {p: p.stat().st_mtime_ns for p in place.runs.rglob("*") if p.is_file()}
    request, outcomes = run(place, asked, False, lambda r: None)
    assert outcomes == []
    assert request.todo == []
    assert {p: p.stat().st_mtime_ns for p in place.runs.rglob("*") if p.is_file()} == stamps
    request, outcomes = run(place, [*asked[:-1], "seed=0,1,2"], False, lambda r: None)
    assert len(outcomes) == 1
    assert len(list(place.runs.rglob("result.json"))) == 3
    folders = {p.folder.path for p in request.plans}
    assert {p.parent.parent for p in place.runs.rglob("hydra/config.yaml")} == folders
    assert set((place.runs / "scratch").iterdir()) == folders  # nothing of Hydra's own lies beside them


def test_a_half_run_is_started_afresh(scripted):
    (plan,) = scripted("seed=5")
    plan.folder.path.mkdir(parents=True)
    plan.folder.events.write_text('{"v": 1, "i": 0, "t": 0, "event": "start"')
    (plan.folder.path / "leftover").mkdir()
    outcome = execute(plan)
    assert outcome.result["solved"] is True
    assert not (plan.folder.path / "leftover").exists()
    assert sum(e["event"] == "stop" for e in read_events(plan.folder.events)) == 1


def test_a_run_that_cannot_start_is_recorded_and_the_next_goes_on(place, fixes_cart):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bad = f"server.port={taken.getsockname()[1]},null"
        asked = ["server=scripted", f"server.scenario={fixes_cart}", "task=cart", bad, "seed=7"]
        _, outcomes = run(place, asked, False, lambda r: None)
    # Both cells have one run id (a port changes no result): the first fails, the second makes the run good.
    assert [o.result is None for o in outcomes] == [True, False]
    assert "can't listen on 127.0.0.1" in outcomes[0].failure
    assert outcomes[1].result["solved"] is True
    assert not (outcomes[1].folder / FAILED).exists()


def test_a_failure_keeps_its_cause(scripted):
    (plan,) = scripted("seed=8", "agent.tools=[read_file,nonsense]")
    outcome = execute(plan)
    assert outcome.result is None
    kept = json.loads((plan.folder.path / FAILED).read_text())
    assert kept["cause"] == "SettingsError"
    assert kept["error"].startswith("agent.tools: no tool named nonsense")
    assert kept["traceback"] is None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle_the_sweep_goes_on_and_nothing_is_left(place, tmp_path, how):
    slow = tmp_path / "slow.yaml"
    slow.write_text("about: waits\nsteps:\n- {say: done, latency_s: 1.5, times: null}\n")
    asked = ["server=scripted", f"server.scenario={slow}", "task=cart", "finish=none", "seed=0,1"]
    command = [sys.executable, "-m", "harness", "run", *asked, "--study", str(place.study), "--runs", str(place.runs)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        # What a shell starts in the background ignores SIGINT, and so would the command under test.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(place.runs.rglob("events.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(place.runs.rglob("events.jsonl"))
    os.kill(process.pid, how)
    words = process.communicate(timeout=60)[1]
    assert process.returncode in (-signal.SIGKILL, 130)
    if how == signal.SIGINT:
        assert "run the same command to go on" in words
    assert not list(place.runs.rglob("result.json"))
    until = time.monotonic() + 10
    while processes_of_session(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert processes_of_session(process.pid) == []
    _, outcomes = run(place, asked, False, lambda r: None)
    assert [o.result["stop_reason"] for o in outcomes] == ["declared_done"] * 2


def processes_of_session(session: int) -> list[int]:
    """The pids whose session is `session`."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_departures_are_what_differs_from_the_agent_version(scripted):
    (plain,) = scripted("agent=part3")
    assert departures(plain) == {}
    (changed,) = scripted(
        "agent=part3", "agent.max_steps=9", "protocol=text_json", "server.max_tokens=800", "server.n_ctx=4096"
    )
    assert departures(changed) == {
        "agent.max_steps": [30, 9],
        "protocol.name": ["native", "text_json"],
        "server.max_tokens": [None, 800],
    }


def test_a_plan_survives_pickling(scripted):
    (plan,) = scripted("seed=9")
    again = pickle.loads(pickle.dumps(plan))
    assert again.run_id == plan.run_id
    assert execute(again).result["solved"] is True


def test_a_request_that_fails_starts_nothing(place):
    with pytest.raises(ValueError, match="no_such_task"):
        prepare(place, ["task=own", "task.path=no_such_task"], False)
    assert not place.runs.exists()
