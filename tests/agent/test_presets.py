"""Each agent version as it goes over the wire: tools offered, prompt, first message, its rule, what it says of repeated writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from whole_runs import kind, planned, played, told

from harness.agent.prompts import prompt

FILES = ["list_files", "read_file", "write_file"]
ALL = [*FILES, "edit_file", "bash"]
PLANS = ["scratchpad_write", "scratchpad_read", "todo_append", "todo_update", "todo_list"]
WHERE = "The repo is the current directory"
SAYS_DONE = "about: says so\nsteps:\n- say: done\n"
ONE_COMMAND = "about: one command\nsteps:\n- calls: [{bash: {command: ls}}]\n- say: done\n"
WRITES_TWICE = """
about: the same content again
steps:
- calls: [{write_file: {path: note.txt, content: one}}]
- calls: [{write_file: {path: note.txt, content: one}}]
- say: done
"""

# agent, overrides, tools in their order, whether the prompt names the current directory
PRESETS: list[tuple[str, list[str], list[str], bool]] = [
    ("minimal", [], ["read_file", "write_file", "edit_file", "bash"], False),
    ("files_only", [], FILES, False),
    ("files_only", ["agent.same_content_notice=true"], FILES, False),
    ("part1", [], [*FILES, "bash"], True),
    ("part1", ["agent.prompt=without_directory"], [*FILES, "bash"], False),
    ("part2_first_rule", [], ALL, True),
    ("part2_as_run", [], ALL, True),
    ("part2", [], ALL, True),
    ("clear_only", [], ALL, True),
    ("part3", [], ALL, True),
    ("planning", [], [*ALL, *PLANS], True),
]
RULES = {
    **{"minimal": "ask_all", "part1": "ask_all"},
    **{"part2_first_rule": "first", "part2_as_run": "second_as_run"},
}


@pytest.mark.parametrize(("agent", "overrides", "tools", "where"), PRESETS)
def test_what_a_version_sends(tmp_path: Path, agent: str, overrides: list[str], tools: list[str], where: bool) -> None:
    more = ["finish=none", "server.record_tape=true"]
    plan = planned(
        tmp_path, f"agent={agent}", *more, *overrides, scenario=ONE_COMMAND if "bash" in tools else SAYS_DONE
    )
    _, events = played(plan)
    (start,) = kind(events, "start")
    assert [t["function"]["name"] for t in start["tools"]] == tools
    assert (WHERE in start["system"]) is where
    assert start["system"] == " ".join(told(events, "system"))
    assert told(events) == [plan.task.instruction]
    body = sent(plan.folder.path / "tape.jsonl")
    assert body["tools"] == start["tools"]
    assert [m["content"] for m in body["messages"]] == [start["system"], plan.task.instruction]
    assert body["temperature"] == 0.6
    assert "max_tokens" not in body
    steps = 40 if agent == "minimal" else 30
    assert plan.settings.agent.max_steps == steps
    rule = RULES.get(agent, "second_printed")
    asked = "asks" if rule == "ask_all" else "runs"
    found = [(a["rule"], a["verdict"]) for a in kind(events, "approval")]
    assert found == ([(rule, asked)] if "bash" in tools else [])


def sent(tape: Path) -> dict[str, Any]:
    """The body of the first chat request, as its bytes were."""
    lines = [json.loads(line) for line in tape.read_text().splitlines()]
    return json.loads(next(line for line in lines if line.get("path") == "/v1/chat/completions")["body"])


@pytest.mark.parametrize("notice", [False, True])
def test_the_notice_of_the_same_content(tmp_path: Path, notice: bool) -> None:
    override = f"agent.same_content_notice={str(notice).lower()}"
    row, events = played(planned(tmp_path, "agent=files_only", override, scenario=WRITES_TWICE))
    first, second = told(events, "tool")
    assert first == "wrote 3 characters to note.txt"
    assert (second == first) is not notice
    assert second.startswith(first)
    assert row["identical_writes"] == 1
    assert [e["kind"] for e in kind(events, "note")] == ["same_content"]


def test_the_planning_prompt_says_when_to_plan_replan_reread_and_end() -> None:
    system = " ".join(prompt("planning").split())
    for words in (
        *("Planning.", "Replanning.", "Done.", "in_progress", "Reread the scratchpad", "retry limit"),
        *("do not retry it", "tell the user", "read the request again", "verified the result yourself"),
    ):
        assert words in system
