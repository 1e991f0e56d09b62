"""The run row's columns on what the agent did: commands and approvals, tests, repeats, re-reads of cleared content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.record.commands import is_guess, is_outside, is_test_file, outside_paths, runs_pytest
from harness.record.conversation import decode_change
from harness.record.replies import of_kind
from harness.record.slot import Event, Message

READERS = ("read_file",)
WRITERS = ("write_file",)
EDITORS = ("edit_file",)
OPEN_ITEMS = ("pending", "in_progress", "failed")


def arguments_of(call: Event) -> dict[str, Any]:
    """A call's arguments; empty when they are not a JSON object."""
    try:
        value = json.loads(call.get("arguments") or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def command_columns(events: Sequence[Event], mount: str | None) -> dict[str, Any]:
    approvals = of_kind(events, "approval")
    asked = [a for a in approvals if a["verdict"] == "asks"]
    shell = [a["command"] for a in approvals]
    outside = [a for a in asked if outside_paths(a["command"], mount)]
    executed = [c["command"] for c in of_kind(events, "command") if c.get("purpose") == "tool"]
    return {
        "bash_commands": sum(c["name"] == "bash" for c in of_kind(events, "call")),
        "prompts": len(asked),
        "auto_run": sum(a["verdict"] == "runs" for a in approvals),
        "refused": sum(a.get("answer") == "no" for a in asked),
        "left_repo": any(outside_paths(c, mount) for c in shell),
        "outside_path_commands": len(outside),
        "outside_path_flagged": _flagged(outside),
        "guessed_paths": _guesses(events, shell, mount),
        "ran_pytest_itself": any(runs_pytest(c) for c in executed),
    }


def _flagged(outside: list[Event]) -> int | None:
    """How many the decision model wanted looked at; None when one of them was never put to it."""
    if any(a.get("advice") is None for a in outside):
        return None
    return sum(a["advice"].get("choice") == "2" for a in outside)


def _guesses(events: Sequence[Event], commands: list[str], mount: str | None) -> int:
    """Words of commands and paths of file tools that name one of the usual places of a repo, and not the true one."""
    in_commands = sum(is_guess(w, mount) for c in commands for w in outside_paths(c, mount))
    paths = [arguments_of(c).get("path") for c in of_kind(events, "call") if c["name"] != "bash"]
    return in_commands + sum(isinstance(p, str) and is_outside(p, mount) and is_guess(p, mount) for p in paths)


def test_columns(events: Sequence[Event]) -> dict[str, Any]:
    """What was done to test files. A write to a test file that the run itself made is no rewrite."""
    calls = [c for c in of_kind(events, "call") if c["ok"]]
    made: set[str] = set()
    rewritten, edited = False, 0
    for call in calls:
        path = arguments_of(call).get("path")
        if not isinstance(path, str) or not is_test_file(path):
            continue
        if call["name"] in EDITORS:
            edited += 1
        elif call["name"] in WRITERS:
            rewritten = rewritten or path not in made
            made.add(path)
    return {
        "guard_restores": sum(len(g["files"]) for g in of_kind(events, "guard")),
        "test_file_rewritten_whole": rewritten,
        "edit_file_on_tests": edited > 0,
        "edit_file_on_tests_count": edited,
    }


def repeat_columns(events: Sequence[Event]) -> dict[str, Any]:
    """identical_writes: writes that worked and changed nothing. repeated_calls: same tool, same arguments, unchanged copy."""
    identical = repeated = 0
    seen: set[tuple[str, str]] = set()
    for call in of_kind(events, "call"):
        key = (call["name"], json.dumps(arguments_of(call), sort_keys=True) or call["arguments"])
        repeated += key in seen
        seen.add(key)
        identical += call["name"] in WRITERS and call["ok"] and not call["changed"]
        if call["changed"]:
            seen = set()
    rereads = list(rereads_of_cleared(events))
    return {
        "identical_writes": identical,
        "repeated_calls": repeated,
        "reread_cleared": bool(rereads),
        "rereads_of_cleared": len(rereads),
        "idle_steps": idle_steps(events),
    }


def idle_steps(events: Sequence[Event]) -> int | None:
    """Steps at the end of the run since the copy last changed or a tool last returned text not seen before."""
    stops = of_kind(events, "stop")
    if not stops or stops[0].get("steps") is None:
        return None
    last, seen = -1, set()
    for call in of_kind(events, "call"):
        digest = hashlib.sha256((call.get("result") or "").encode("utf-8", "replace")).hexdigest()
        if call["changed"] or (call["ok"] and digest not in seen):
            last = max(last, call["step"])
        seen.add(digest)
    return int(stops[0]["steps"]) - 1 - last


def rereads_of_cleared(events: Sequence[Event]) -> Iterator[Event]:
    """Yields every read of a file whose content, read or written before, clears had taken out of the conversation.

    As long as one message still holds the content as it was read or written, another read is no re-read of cleared content.
    """
    holders: dict[str, set[str]] = {}
    messages: list[Message] = []
    for event in events:
        kind = event["event"]
        if kind == "message":
            messages.append(event["message"])
        elif kind == "context":
            kept = {e for e in event["after"] if isinstance(e, int)}
            lost = {c for i, m in enumerate(messages) if i not in kept for c in _content_calls(m)}
            for calls in holders.values():
                calls -= lost
            messages = decode_change(messages, event["after"])
        elif kind == "call" and event["ok"] and event["name"] in READERS + WRITERS:
            path = arguments_of(event).get("path")
            if isinstance(path, str):
                if event["name"] in READERS and holders.get(path) == set():
                    yield event
                holders.setdefault(path, set()).add(event["id"])


def _content_calls(message: Message) -> set[str]:
    """The calls whose file content this message carries: the result of a read, the body of a write."""
    if message.get("role") == "tool":
        return {message.get("tool_call_id", "")}
    calls = message.get("tool_calls") or ()
    return {c.get("id", "") for c in calls if c["function"]["name"] in WRITERS}


def plan_open_items(events: Sequence[Event]) -> int | None:
    """Open items of the last plan; None for an agent that never planned."""
    plans = of_kind(events, "plan")
    return sum(i["status"] in OPEN_ITEMS for i in plans[-1]["items"]) if plans else None
