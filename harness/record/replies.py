"""The run row's columns on replies, cuts, refusals, clears and the end of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.record.slot import Event

# Our stop reasons in the words of the published data; the others keep their names.
PUBLISHED_END = {"declared_done": "finished"}


def of_kind(events: Sequence[Event], kind: str) -> list[Event]:
    return [e for e in events if e["event"] == kind]


def stop_of(events: Sequence[Event]) -> Event:
    """The stop event; empty for a run that never came to one."""
    return next((e for e in events if e["event"] == "stop"), {})


def agent_responses(events: Sequence[Event]) -> list[Event]:
    return [e for e in of_kind(events, "response") if e.get("tag", "agent") == "agent"]


def reply_columns(events: Sequence[Event]) -> dict[str, Any]:
    responses = agent_responses(events)
    cuts = [e for e in responses if e["outcome"] == "cut"]
    kinds = [e.get("kind") for e in cuts]
    return {
        "requests": sum(e.get("tag") == "agent" for e in of_kind(events, "request")),
        "truncated_answers": len(cuts),
        "cut_by_window": kinds.count("window"),
        "cut_by_limit": kinds.count("limit"),
        "cut_unparsed": kinds.count("unparsed"),
        "answer_cut_at_window_end": "window" in kinds,
        "truncated_as_done": _taken_as_done(events, cuts),
        "rejected_requests": sum(e["outcome"] == "overflow" for e in responses),
    }


def _taken_as_done(events: Sequence[Event], cuts: list[Event]) -> int:
    """Cut replies without a call that the agent kept: it took them for the model's last word."""
    acted = {e["step"] for e in of_kind(events, "call")}
    return sum(not e.get("dropped") and e.get("kind") != "unparsed" and e["step"] not in acted for e in cuts)


def end_columns(events: Sequence[Event]) -> dict[str, Any]:
    """How the run ended; all None for a run without a stop event."""
    stop = stop_of(events)
    ended = ended_how(events)
    return {
        "steps": stop.get("steps"),
        "ended_how": ended,
        "stop_reason": stop.get("reason"),
        "declared_done": stop.get("declared_done"),
        "stopped_with_400": None if ended is None else ended == "server_400",
        "stopped_with_500": None if ended is None else ended == "server_500",
    }


def ended_how(events: Sequence[Event]) -> str | None:
    """finished, server_500, server_400, step_limit, context_exhausted, or another stop reason under its own name.

    context_exhausted is an end of its own: the agent stopped because nothing was left to clear, not because of the 400.
    """
    stop = stop_of(events)
    reason = stop.get("reason")
    if reason != "server_error":
        return PUBLISHED_END.get(reason, reason) if reason else None
    answers = agent_responses(events)
    status = stop.get("status") or (answers[-1].get("status") if answers else None)
    return {400: "server_400", 500: "server_500"}.get(status, reason) if isinstance(status, int) else reason


def clear_columns(events: Sequence[Event]) -> dict[str, Any]:
    """Clears are the policy's context events; one that changed no message is still a clear, counted apart too."""
    clears = of_kind(events, "context")
    counts = [e.get("cleared") or 0 for e in clears]
    cuts = [e["i"] for e in agent_responses(events) if e["outcome"] == "cut"]
    return {
        "clears": len(clears),
        "cleared_messages": sum(counts),
        "cleared_nothing": counts.count(0),
        "first_clear_after_cut": None if not clears else bool(cuts) and cuts[0] < clears[0]["i"],
    }
