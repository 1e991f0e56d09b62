"""Every stop reason is reached by a whole run, and every run that ends has one `stop` event and one result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_runs import events_of, kind, planned, played, told

from harness.agent.stop import StopReason
from harness.sweep.run import execute

READS = "about: reads for ever\nsteps:\n- {calls: [{read_file: {path: cart.py}}], repeat: forever}\n"
FAILS = (
    "- {calls: [{todo_update: {id: 1, status: failed}}]}\n- {calls: [{todo_update: {id: 1, status: in_progress}}]}\n"
)
ESCALATES = (
    "about: an item fails until its limit, then the user is told\nsteps:\n"
    "- {calls: [{todo_append: {id: 1, content: repair, status: in_progress}}]}\n" + 3 * FAILS + "- say: I need help.\n"
)

# reason, scenario, overrides, steps, declared done.
ENDS: list[tuple[StopReason, str, list[str], int]] = [
    (StopReason.DECLARED_DONE, "about: says so\nsteps:\n- say: done\n", ["agent=part1"], 1),
    (StopReason.STEP_LIMIT, READS, ["agent=part3", "agent.max_steps=3"], 3),
    (
        StopReason.CONTEXT_EXHAUSTED,
        "about: too large\nsteps:\n- {fail: overflow, prompt_tokens: 9000, repeat: forever}\n",
        ["agent=part3"],
        1,
    ),
    (StopReason.SERVER_ERROR, "about: 500\nsteps:\n- fail: server_error\n", ["agent=part3"], 1),
    (StopReason.SERVER_ERROR, "about: the server dies\nsteps:\n- fail: gone\n", ["agent=part3"], 1),
    (
        StopReason.REPLY_UNUSABLE,
        "about: cut again and again\nsteps:\n- {think: so, fill: window, repeat: forever}\n",
        ["agent=part3", "agent.max_unusable=3"],
        3,
    ),
    (
        StopReason.REPLY_UNUSABLE,
        "about: no call\nsteps:\n- {say: not JSON, repeat: forever}\n",
        ["agent=planning", "protocol=constrained"],
        5,
    ),
    (
        StopReason.TIME_LIMIT,
        "about: slow\nsteps:\n- {calls: [{list_files: {}}], latency_s: 0.3, repeat: forever}\n",
        ["agent=part3", "agent.time_limit_s=0.1"],
        1,
    ),
    (StopReason.ESCALATED, ESCALATES, ["agent=planning"], 8),
]


@pytest.mark.parametrize(
    ("reason", "scenario", "overrides", "steps"), ENDS, ids=[f"{i}-{e[0]}" for i, e in enumerate(ENDS)]
)
def test_each_end_is_one_stop_and_one_result(
    tmp_path: Path, reason: StopReason, scenario: str, overrides: list[str], steps: int
) -> None:
    row, events = played(planned(tmp_path, *overrides, "server.n_ctx=4096", scenario=scenario))
    (stop,) = kind(events, "stop")
    assert (stop["reason"], stop["steps"]) == (reason, steps)
    assert stop["declared_done"] is (reason is StopReason.DECLARED_DONE)
    assert (row["stop_reason"], row["steps"], row["declared_done"]) == (reason, steps, stop["declared_done"])
    # Only what counts the run's requests may follow the stop.
    assert {e["event"] for e in events[events.index(stop) + 1 :]} <= {"count", "resources"}
    assert {"start", "states"} <= plan_grading(tmp_path).keys()


def plan_grading(runs: Path) -> dict[str, Any]:
    (file,) = runs.rglob("grading.json")
    return json.loads(file.read_text())


class Presses:
    """Ctrl-C, once, when the given event has been written."""

    def __init__(self, event: str) -> None:
        self.event: str | None = event

    def emit(self, event: str, **fields: Any) -> None:
        if event == self.event:
            self.event = None
            raise KeyboardInterrupt


@pytest.mark.parametrize("moment", ["request", "response", "call"])
def test_an_interrupted_run_has_no_result_and_is_run_again(tmp_path: Path, moment: str) -> None:
    scenario = "about: looks, says so\nsteps:\n- calls: [{read_file: {path: cart.py}}]\n- say: done\n"
    plan = planned(tmp_path, "agent=part1", scenario=scenario)
    with pytest.raises(KeyboardInterrupt):
        execute(plan, Presses(moment))
    (stop,) = kind(events_of(plan.folder), "stop")
    assert (stop["reason"], stop["declared_done"], stop["steps"]) == (StopReason.INTERRUPTED, False, 1)
    assert not plan.folder.finished
    assert not (plan.folder.path / "failed.json").exists()
    assert not (plan.folder.path / "copy").exists()
    row, events = played(plan)
    assert (row["stop_reason"], row["steps"]) == (StopReason.DECLARED_DONE, 2)
    assert len(kind(events, "start")) == 1


def test_every_stop_reason_of_the_loop_is_reached_here() -> None:
    # agent_failed is how a program that is not ours ends: tests/external.
    elsewhere = {StopReason.INTERRUPTED, StopReason.AGENT_FAILED}
    assert {end[0] for end in ENDS} | elsewhere == set(StopReason)


def test_overflow_clears_once_and_retries_before_the_context_is_exhausted(tmp_path: Path) -> None:
    scenario = (
        "about: refused although it would fit\nsteps:\n"
        "- calls: [{read_file: {path: cart.py}}]\n- calls: [{read_file: {path: test_cart.py}}]\n"
        "- calls: [{list_files: {}}]\n- {fail: overflow, prompt_tokens: 9000, times: 2}\n"
    )
    row, events = played(planned(tmp_path, "agent=part3", "server.n_ctx=8192", scenario=scenario))
    attempts = [(e["step"], e["attempt"], e["outcome"]) for e in kind(events, "response")]
    assert attempts[3:] == [(3, 0, "overflow"), (3, 1, "overflow")]
    assert [(e["when"], e["cleared"]) for e in kind(events, "context") if e["cleared"]] == [("overflow", 1)]
    assert (row["stop_reason"], row["rejected_requests"]) == (StopReason.CONTEXT_EXHAUSTED, 2)


def test_a_premature_end_is_answered_once_with_what_is_open_then_the_gate_decides(tmp_path: Path) -> None:
    scenario = (
        "about: plans, then says done three times\nsteps:\n"
        "- calls: [{scratchpad_write: {text: ' look first '}}, {todo_append: {id: 1, content: repair the total}}]\n"
        "- calls: [{todo_append: {id: two, content: run the tests, status: done}}]\n"
        "- {say: done, times: 2}\n"
        "- calls: [{edit_file: {path: cart.py, old: 'sum(prices[1:])', new: sum(prices)}},"
        " {edit_file: {path: cart.py, old: price + price * percent, new: price - price * percent}},"
        " {todo_update: {id: 1, status: in_progress}}, {todo_update: {id: 1, status: done}}]\n"
        "- say: now it is done\n"
    )
    row, events = played(planned(tmp_path, "agent=planning", scenario=scenario))
    _, open_items, handed_back = told(events)
    assert "still open" in open_items
    assert "- [pending] 1: repair the total" in open_items
    assert "run the tests" not in open_items
    assert handed_back.startswith("pytest fails, so the task is not done yet:")
    assert [(e["step"], e["passed"]) for e in kind(events, "finish_check")] == [(3, False), (5, True)]
    plans = kind(events, "plan")
    assert [(e["step"], e["call"]) for e in plans] == [(0, 0), (0, 1), (1, 0), (4, 2), (4, 3)]
    assert plans[0]["scratchpad"] == "look first"
    assert [(i["id"], i["status"]) for i in plans[-1]["items"]] == [("1", "done"), ("two", "done")]
    assert (row["stop_reason"], row["solved"], row["plan_open_items"]) == (StopReason.DECLARED_DONE, True, 0)


def test_a_cancelled_item_at_its_limit_does_not_escalate(tmp_path: Path) -> None:
    scenario = ESCALATES.replace(
        "- say: I need help.\n", "- {calls: [{todo_update: {id: 1, status: cancelled}}]}\n- say: done\n"
    )
    row, events = played(planned(tmp_path, "agent=planning", "finish=none", scenario=scenario))
    assert row["stop_reason"] == StopReason.DECLARED_DONE
    said = [e["result"] for e in kind(events, "call")]
    assert sum("Retry limit (3) reached" in text for text in said) == 1
    assert sum("This is retry" in text for text in said) == 2
    assert [i["retries"] for i in kind(events, "plan")[-1]["items"]] == [3]


def test_the_escalation_names_the_item_and_keeps_the_models_words(tmp_path: Path) -> None:
    _, events = played(planned(tmp_path, "agent=planning", scenario=ESCALATES))
    (stop,) = kind(events, "stop")
    assert (stop["text"], stop["detail"]) == ("I need help.", "at the retry limit: 1")
    assert not kind(events, "finish_check")


def test_the_plan_can_be_lost_from_the_conversation_only(tmp_path: Path) -> None:
    """The list lives in the harness: after a clear it still answers."""
    scenario = (
        "about: plans, fills the window, lists\nsteps:\n"
        "- calls: [{todo_append: {id: 1, content: repair}}]\n"
        "- {calls: [{read_file: {path: cart.py}}], times: 3}\n"
        "- {think: {tokens: 1500}, calls: [{list_files: {}}]}\n- calls: [{todo_list: {}}]\n- say: done\n"
    )
    plan = planned(tmp_path, "agent=planning", "server.n_ctx=4096", "agent.max_steps=6", scenario=scenario)
    row, events = played(plan)
    assert row["clears"] > 0
    assert kind(events, "call")[-1]["result"] == "1 items (pending: 1)\n- [pending] 1: repair"
    assert row["plan_open_items"] == 1
