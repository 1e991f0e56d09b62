"""Two runs side by side: the same, or the first step at which they differ and why; times are no difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import command
from recorded_runs import clearing_run, false_run, solved_run

from analysis.compare import compare, compare_repeats, first_difference
from analysis.report import write_report
from analysis.tables import load, runs
from harness.record.events import read_events
from harness.record.folder import RunFolder, write_json

Change = Callable[[list[dict[str, Any]]], None]


def edited(folder: RunFolder, change: Change) -> RunFolder:
    """The same run with its events changed, numbered anew."""
    events = list(read_events(folder.events))
    change(events)
    folder.events.write_text("".join(json.dumps(e | {"i": i}) + "\n" for i, e in enumerate(events)))
    return folder


def at(events: list[dict[str, Any]], kind: str, step: int) -> dict[str, Any]:
    return next(e for e in events if e["event"] == kind and e["step"] == step)


def test_two_runs_of_one_cell_are_the_same_times_aside(tmp_path: Path) -> None:
    a, b = clearing_run(tmp_path / "a"), clearing_run(tmp_path / "b")

    def slower(events: list[dict[str, Any]]) -> None:
        for event in events:
            event["t"] += 100.0
            if "ms" in event:
                event["ms"] *= 3
            if event.get("timings"):
                event["timings"] |= {"prompt_ms": 1.0, "predicted_ms": 2.0}
            if event["event"] == "resources":
                event["resident_bytes"] = 1

    found = compare(a, edited(b, slower))
    assert found.same_cell
    assert found.first is None
    assert found.events == sum(e["event"] not in ("start", "resources") for e in read_events(a.events))
    assert found.line() == f"the same {found.events} events, times aside"


def change_reply(events: list[dict[str, Any]]) -> None:
    at(events, "response", 2)["message"]["content"] = "test it now"
    at(events, "message", 2)["message"]["content"] = "test it now"


def change_reuse(events: list[dict[str, Any]]) -> None:
    response = at(events, "response", 1)
    response["timings"]["cache_n"] -= 7
    response["message"]["content"] = "another text"


def change_result(events: list[dict[str, Any]]) -> None:
    at(events, "call", 2)["result"] = "2 passed, 1 failed"


def change_parameters(events: list[dict[str, Any]]) -> None:
    at(events, "request", 1)["params"]["temperature"] = 0.7
    at(events, "request", 1)["sha256"] = "1" * 64


def change_body(events: list[dict[str, Any]]) -> None:
    at(events, "request", 3)["sha256"] = "1" * 64


def leave_out_the_check(events: list[dict[str, Any]]) -> None:
    events.remove(at(events, "finish_check", 3))


def end_early(events: list[dict[str, Any]]) -> None:
    del events[next(i for i, e in enumerate(events) if e["event"] == "count") :]


@pytest.mark.parametrize(
    ("change", "step", "why"),
    [
        (change_reply, 2, "the text of the reply"),
        (change_reuse, 1, "how much of the prompt was reused"),
        (change_result, 2, "the result of a tool"),
        (change_parameters, 1, "the parameters of the request"),
        (change_body, 3, "the body of the request"),
        (leave_out_the_check, 3, "another thing happened: finish_check in the first run, stop in the second"),
        (end_early, 0, "the second run ends here, the other goes on (count)"),
    ],
)
def test_the_first_step_that_differs_and_why(tmp_path: Path, change: Change, step: int, why: str) -> None:
    a, b = solved_run(tmp_path / "a"), solved_run(tmp_path / "b")
    found = compare(a, edited(b, change)).first
    assert found is not None
    assert found.step == step
    assert found.why.startswith(why)
    assert compare(a, a).first is None


def test_a_long_text_is_shown_from_where_it_parts(tmp_path: Path) -> None:
    one = {"event": "call", "step": 4, "result": "x" * 500 + "left" + "y" * 500}
    number, found = first_difference([one], [one | {"result": "x" * 500 + "right" + "y" * 500}])
    assert number == 0
    assert found is not None
    assert found.fields["result"][0] == one["result"]


def test_settings_are_told_apart_from_what_happened(tmp_path: Path) -> None:
    found = compare(solved_run(tmp_path, seed=1), solved_run(tmp_path, seed=1, n_ctx=8192))
    assert found.settings == {"n_ctx": [4096, 8192]}
    assert not found.same_cell
    assert found.first is None
    other = compare(solved_run(tmp_path / "x"), false_run(tmp_path / "x"))
    assert other.first is not None
    assert other.document()["first_difference"]["step"] == other.first.step


def test_a_repeat_is_compared_in_the_report_and_not_counted_again(tmp_path: Path) -> None:
    first = solved_run(tmp_path)
    solved_run(tmp_path, seed=1)
    again = edited(solved_run(tmp_path / "quick" / "again"), change_reply)
    solved_run(tmp_path / "quick" / "again", seed=1)
    records = load(tmp_path)
    assert len(runs(records)) == 2
    pairs = compare_repeats(records)
    assert (first.path, again.path) in [(a.folder.path, b.folder.path) for a, b, _ in pairs]
    assert sorted(c.first is None for _, _, c in pairs) == [False, True]
    page = write_report(tmp_path, [], tmp_path / "report.html", notebooks=()).read_text()
    assert "Cells and seeds that were run twice: 1 of 2 went the same way" in page
    assert "first difference at step 2: the text of the reply: message.content: " in page
    assert "a second run of the same cell and seed, not counted again" in page


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = solved_run(tmp_path / "a"), edited(solved_run(tmp_path / "b"), change_reply)
    assert command("compare", str(a.path), str(b.path)) == 0
    out = capsys.readouterr().out
    assert "same cell and seed" in out
    assert "first difference at step 2: the text of the reply" in out
    assert "'test it now'" in out
    assert command("compare", str(a.path), str(b.path), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["first_difference"]["why"] == "the text of the reply"
    assert document["same_cell"] is True


def test_a_wrong_request_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = solved_run(tmp_path / "a")
    damaged = solved_run(tmp_path / "b")
    damaged.events.write_text("no event\n" * 3)
    (tmp_path / "c").mkdir()
    write_json(tmp_path / "c" / "manifest.json", {})
    for other, words in (
        (tmp_path / "nowhere", "no run of that name"),
        (damaged.path, "not a JSON event"),
        (tmp_path / "c", "can't be read"),
    ):
        assert command("compare", str(a.path), str(other), "--runs", str(tmp_path)) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert words in error
