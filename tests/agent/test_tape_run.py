"""A whole run on tape: the replay gives the same events, times aside."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_runs import planned, played, without_times

from harness.models import ModelError, resolve

SCENARIO = """
about: a cut reply, a parse error, several calls, a command, a repair
steps:
- think: {tokens: 40}
  calls: [{read_file: {path: cart.py}}, {list_files: {}}]
- {think: too long, fill: window}
- fail: unparsed_new
- calls: [{bash: {command: ls}}]
- calls:
  - edit_file: {path: cart.py, old: "sum(prices[1:])", new: sum(prices)}
  - edit_file: {path: cart.py, old: price + price * percent, new: price - price * percent}
- say: Both are repaired.
"""
# Of the server process, not of the run: what the replay has no process to look at.
MACHINE = ("resources",)


def recorded_and_replayed(
    tmp_path: Path, *overrides: str, scenario: str | None = None, server: str = "scripted"
) -> tuple:
    asked = [*overrides, "server.n_ctx=2048"]
    first = planned(tmp_path / "recorded", *asked, f"server={server}", "server.record_tape=true", scenario=scenario)
    row, events = played(first)
    tape = first.folder.path / "tape.jsonl"
    again = planned(tmp_path / "replayed", *asked, "server=tape", f"server.tape={tape}")
    return row, events, *played(again), first, again


def same(events: list[dict], others: list[dict]) -> bool:
    plain = [without_times([e for e in run if e["event"] not in MACHINE]) for run in (events, others)]
    for one, other in zip(*plain, strict=True):
        assert one == other
    return True


def test_the_double_on_tape(tmp_path: Path) -> None:
    row, events, again, replayed, first, second = recorded_and_replayed(tmp_path, "agent=part3", scenario=SCENARIO)
    assert row["solved"] is True
    assert (row["cut_by_window"], row["cut_unparsed"]) == (1, 1)
    assert same(events, replayed)
    assert (row["kind"], again["kind"]) == ("scripted", "tape")
    assert first.run_id != second.run_id
    own = {"run_id", "kind", "model", "arm"}
    timed = {k for k in row if "seconds" in k} | {"peak_resident_bytes", "peak_gpu_bytes"}
    assert {k: v for k, v in row.items() if k not in own | timed} == {k: again[k] for k in row if k not in own | timed}


@pytest.mark.real
def test_a_real_server_on_tape(tmp_path: Path) -> None:
    try:
        resolve("smollm2-135m")
    except ModelError as e:
        pytest.skip(f"no small model here: {e}")
    asked = ["agent=part3", "model=smollm2-135m", "agent.max_steps=2", "server.max_tokens=24", "server.threads=1"]
    row, events, again, replayed, _, _ = recorded_and_replayed(tmp_path, *asked, server="embedded")
    assert (row["kind"], again["kind"]) == ("real", "tape")
    assert row["steps"] == 2 or row["declared_done"]
    assert row["evaluated_tokens"] > 0
    assert same(events, replayed)
