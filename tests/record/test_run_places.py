"""Finding runs and reading their events where a folder holds something else."""

from __future__ import annotations

import pytest

from harness.record.events import EventError, read_events
from harness.record.folder import RecordError, find_runs


@pytest.mark.parametrize("line", ["[1]", "null", '"text"', "1"])
def test_a_line_of_json_that_is_no_event_is_named(tmp_path, line):
    (tmp_path / "events.jsonl").write_text(line + "\n")
    with pytest.raises(EventError, match="line 1: not a JSON event"):
        list(read_events(tmp_path / "events.jsonl"))


def test_a_file_and_nothing_are_no_folder_of_runs(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("file", "nothing"):
        with pytest.raises(RecordError, match="no such folder"):
            find_runs(tmp_path / name)


def test_runs_beside_links_that_go_round_are_found_once(tmp_path):
    run = tmp_path / "a" / "run"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    assert [found.path for found in find_runs(tmp_path)] == [run]
