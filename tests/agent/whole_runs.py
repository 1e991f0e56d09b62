"""Whole runs of one cell against the double, for the tests of this room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.paths import shipped
from harness.record.events import EventSink, read_events
from harness.record.folder import RunFolder
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.plan import RunPlan
from harness.sweep.run import execute


def planned(runs: Path, *overrides: str, scenario: str | None = None, task: str = "cart") -> RunPlan:
    """The plan of one cell; `scenario` is a scenario's text, played by the double."""
    asked = [f"task={task}", *overrides]
    if scenario is not None:
        file = runs / "scenario.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(scenario)
        asked += ["server=scripted", f"server.scenario={file}"]
    (plan,) = prepare(Place(shipped("conf").parent, runs), asked, False).plans
    return plan


def played(plan: RunPlan, listener: EventSink | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Runs it to its end; the result row and the events. Every end leaves one `stop` and one result."""
    outcome = execute(plan, listener)
    assert outcome.failure is None
    assert outcome.result is not None
    events = events_of(plan.folder)
    assert [e["event"] for e in events].count("stop") == 1
    assert list(plan.folder.path.glob("result*")) == [plan.folder.path / "result.json"]
    assert plan.folder.result() == outcome.result
    return outcome.result, events


def events_of(folder: RunFolder) -> list[dict[str, Any]]:
    return list(read_events(folder.events))


def kind(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [e for e in events if e["event"] == name]


def told(events: list[dict[str, Any]], role: str = "user") -> list[str]:
    """The texts of the messages of one role."""
    return [e["message"]["content"] for e in kind(events, "message") if e["message"]["role"] == role]


TIMED = ("t", "ms")


def without_times(value: Any) -> Any:
    """Events without what a clock gave."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMED}
    return [without_times(v) for v in value] if isinstance(value, list) else value
