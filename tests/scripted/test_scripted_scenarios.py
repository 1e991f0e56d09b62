"""Every shipped scenario, played by the agent versions it is meant for, ends as its `about` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.record.events import read_events
from harness.serving.scripted import scenario
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.run import execute

PROJECT = Path(scenario.__file__).parents[3]
ADVICE_PORT = 18766

# scenario, agent, window, further settings, and what the run's row has to say.
PLAYED: list[tuple[str, str, int, list[str], dict[str, Any]]] = [
    ("solves", "part2", 8192, [], {"stop_reason": "declared_done", "solved": True, "finish_check_passed": True}),
    (
        "cut_taken_as_done",
        "part2",
        4096,
        [],
        {
            "stop_reason": "declared_done",
            "false_finish": True,
            "truncated_as_done": 1,
            "cut_by_window": 1,
            "files_changed": 0,
            "false_completion": True,
            "hidden_passed": 2,
            "hidden_total": 6,
            "worse_than_start": False,
        },
    ),
    (
        "cut_taken_as_done",
        "clear_only",
        4096,
        [],
        {"false_finish": True, "false_completion": True, "truncated_as_done": 1, "hidden_passed": 2},
    ),
    ("cut_taken_as_done", "part3", 4096, [], {"solved": True, "truncated_answers": 1, "truncated_as_done": 0}),
    ("parse_500", "part2", 8192, [], {"stop_reason": "server_error", "stopped_with_500": True, "cut_unparsed": 1}),
    ("parse_500", "part3", 8192, [], {"stop_reason": "declared_done", "solved": True, "cut_unparsed": 1}),
    ("overflow", "part3", 4096, [], {"stop_reason": "context_exhausted", "rejected_requests": 3}),
    ("guard_restores", "part2", 8192, [], {"guard_restores": 1, "solved": True, "steps": 5}),
    (
        "finish_check_fails",
        "part2",
        8192,
        [],
        {"solved": True, "steps": 4, "finish_check": 2, "finish_check_passed": True},
    ),
    ("thirty_steps", "part2", 32768, [], {"stop_reason": "step_limit", "steps": 30, "declared_done": False}),
    ("rereads_cleared", "part3", 4096, [], {"reread_cleared": True, "solved": True}),
    ("same_content", "files_only", 32768, [], {"stop_reason": "step_limit", "identical_writes": 28}),
    ("call_of_96000_characters", "files_only", 32768, [], {"stop_reason": "server_error", "files_changed": 0}),
    ("call_of_96000_characters", "part3", 32768, [], {"false_finish": True, "truncated_answers": 1}),
    ("solved_but_stopped", "part2", 8192, [], {"stop_reason": "server_error", "solved": True, "declared_done": False}),
    ("solved_but_exhausted", "part3", 4096, [], {"stop_reason": "context_exhausted", "solved": True, "tests_added": 0}),
    ("worse_than_start", "part3", 4096, [], {"worse_than_start": True, "hidden_passed": 0, "regressions": 3}),
    ("empty_last_message", "part1", 32768, [], {"empty_completion": True, "untested_completion": True}),
    ("own_test_fails", "part1", 32768, [], {"solved": True, "hidden_passed": 6, "visible_left_passed": 4}),
    (
        "outside_paths",
        "part2",
        32768,
        [],
        {"left_repo": True, "guessed_paths": 2, "outside_path_commands": 2, "solved": True},
    ),
    ("refused_command", "part2", 32768, ["approval.answer=auto_no"], {"refused": 1, "auto_run": 1, "solved": True}),
    (
        "advice",
        "part2",
        32768,
        ["approval.advice=true", f"server.port={ADVICE_PORT}", f"approval.advice_url=http://127.0.0.1:{ADVICE_PORT}"],
        {"prompts": 2, "outside_path_commands": 1, "outside_path_flagged": 1},
    ),
    ("bad_history", "part2", 8192, [], {"stop_reason": "server_error", "steps": 2}),
    ("bad_history", "part3", 8192, [], {"stop_reason": "step_limit", "truncated_answers": 29}),
    ("bad_history", "part3", 8192, ["agent.keep_bad_arguments=false"], {"solved": True}),
    (
        "hostile",
        "part2",
        32768,
        [
            "finish.gate=none",
            "agent.command_timeout_s=6",
            "sandbox.processes=64",
            f"sandbox.memory_bytes={2**29}",
            f"sandbox.file_bytes={2**23}",
            f"sandbox.disk_bytes={2**25}",
            f"sandbox.output_bytes={2**16}",
        ],
        {"stop_reason": "declared_done", "steps": 28, "solved": False, "false_completion": True, "hidden_passed": 0},
    ),
]


def test_every_shipped_scenario_is_played_here() -> None:
    assert {played[0] for played in PLAYED} | {"simulated"} == set(scenario.shipped())


@pytest.mark.parametrize(
    ("name", "agent", "n_ctx", "more", "expected"), PLAYED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_scenario(tmp_path: Path, name: str, agent: str, n_ctx: int, more: list[str], expected: dict[str, Any]) -> None:
    overrides = [
        f"agent={agent}",
        "server=scripted",
        f"server.scenario={name}",
        f"server.n_ctx={n_ctx}",
        "task=todo",
        *more,
    ]
    (plan,) = prepare(Place(PROJECT, tmp_path), overrides, False).plans
    outcome = execute(plan)
    assert outcome.failure is None
    assert outcome.result is not None
    assert {key: outcome.result[key] for key in expected} == expected
    responses = [e for e in read_events(outcome.folder / "events.jsonl") if e["event"] == "response"]
    assert not any("scenario" in (e["error"] or "") for e in responses), "the scenario had no step left"
