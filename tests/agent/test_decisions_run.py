"""Whole runs with a decision model that is off, or with a person at the terminal who is not there."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from whole_runs import events_of, kind, planned, played

from harness.agent.approval.advice import Decider
from harness.agent.approval.answer import REFUSAL
from harness.models import ModelError, resolve
from harness.paths import shipped
from harness.serving.servers import open_server
from harness.settings import ServerSettings

ASKS = """
about: a command that asks, then it is repaired
steps:
- calls: [{bash: {command: 'python -c "import cart"'}}]
- calls:
  - edit_file: {path: cart.py, old: "sum(prices[1:])", new: sum(prices)}
  - edit_file: {path: cart.py, old: price + price * percent, new: price - price * percent}
- say: Both are repaired.
"""


@pytest.fixture
def nobody() -> Iterator[str]:
    """A URL where nothing listens: bound, and so nobody else's, but not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_decision_model_that_is_off_gives_no_answer_and_the_run_goes_on(tmp_path: Path, nobody: str) -> None:
    advice = ["approval.advice=true", f"approval.advice_url={nobody}"]
    row, events = played(planned(tmp_path, "agent=part2", *advice, scenario=ASKS))
    (approval,) = [a for a in kind(events, "approval") if a["verdict"] == "asks"]
    assert approval["advice"]["line"].startswith("decision model: no answer (")
    assert (approval["advice"]["choice"], approval["advice"]["probability"]) == (None, None)
    assert approval["answer"] == "yes"
    assert (row["prompts"], row["refused"], row["solved"], row["stop_reason"]) == (1, 0, True, "declared_done")


def test_a_person_who_is_not_there_declines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobody: str) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.setattr(sys, "stderr", screen)
    asked = ["approval.answer=terminal", "approval.advice=true", f"approval.advice_url={nobody}"]
    row, events = played(planned(tmp_path, "agent=part2", *asked, scenario=ASKS))
    (approval,) = [a for a in kind(events, "approval") if a["verdict"] == "asks"]
    assert (approval["answer"], approval["answered_by"]) == ("no", "terminal")
    assert kind(events, "call")[0]["result"] == REFUSAL
    assert [c["purpose"] for c in kind(events, "command")] == ["finish_check"]
    assert (row["refused"], row["solved"]) == (1, True)
    shown = screen.getvalue()
    assert "decision model: no answer (" in shown
    assert 'python -c "import cart" [y/N]' in shown
    assert "asks: " in shown


def test_a_yes_at_the_terminal_lets_it_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    row, events = played(planned(tmp_path, "agent=part2", "approval.answer=terminal", scenario=ASKS))
    assert [c["purpose"] for c in kind(events, "command")] == ["tool", "finish_check"]
    assert (row["prompts"], row["refused"], row["solved"]) == (1, 0, True)


def test_the_command_line_asks_and_the_end_of_input_means_no(tmp_path: Path) -> None:
    plan = planned(tmp_path, "agent=part2", "approval.answer=terminal", scenario=ASKS)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness", "run", "agent=part2", "approval.answer=terminal", "task=cart"),
            *("server=scripted", f"server.scenario={plan.settings.server.scenario}"),
            *("--study", str(shipped("conf").parent), "--runs", str(tmp_path)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    assert "[y/N]" in done.stderr
    (approval,) = [a for a in kind(events_of(plan.folder), "approval") if a["verdict"] == "asks"]
    assert approval["answer"] == "no"
    assert plan.folder.result()["solved"] is True


@pytest.mark.real
def test_what_llama_server_itself_says_when_its_model_decides_nothing(tmp_path: Path) -> None:
    try:
        model = resolve("smollm2-135m")
    except ModelError as e:
        pytest.skip(f"no small model here: {e}")
    with open_server(ServerSettings(kind="embedded", n_ctx=512, threads=1), model, tmp_path) as server:
        advice = Decider(server.base_url).advise("rm -rf build", "/srv/project")
    assert (advice.choice, advice.probability) == (None, None)
    assert advice.error is not None
    assert advice.error.startswith("HTTP 501: ")
    assert advice.line == f"decision model: no answer ({advice.error})"
