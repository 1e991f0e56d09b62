"""One test per asked feature, in the order of the instruction."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from todo import main


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "items.json")


def run(file, *argv, **today):
    """Runs the app; takes a SystemExit(0) for a normal end."""
    try:
        code = main(["--file", file, *argv], **today)
    except SystemExit as e:
        code = e.code
    assert code in (0, None)


def listed(file, capsys, *argv, **today):
    capsys.readouterr()
    run(file, "list", *argv, **today)
    return capsys.readouterr().out


def test_add_takes_a_due_date(file, capsys):
    run(file, "add", "pay rent", "--due", "2031-05-01")
    run(file, "add", "water plants")
    out = listed(file, capsys)
    assert "pay rent" in out
    assert "water plants" in out


def test_list_prints_the_date_after_the_title(file, capsys):
    run(file, "add", "pay rent", "--due", "2031-05-01")
    run(file, "add", "water plants")
    first, second = listed(file, capsys).splitlines()
    assert re.search(r"pay rent\b.*2031-05-01", first)
    assert not re.search(r"\d{4}-\d\d-\d\d", second)


def test_list_overdue_prints_what_is_past_due_and_not_done(file, capsys):
    run(file, "add", "long ago", "--due", "2001-01-01")
    run(file, "add", "finished", "--due", "2001-01-02")
    run(file, "add", "far off", "--due", "2999-12-31")
    run(file, "add", "some day")
    run(file, "done", "2")
    out = listed(file, capsys, "--overdue")
    assert "long ago" in out
    assert not any(title in out for title in ("finished", "far off", "some day"))


def test_today_can_be_passed_in(file, capsys):
    run(file, "add", "pay rent", "--due", "2031-05-01")
    assert "pay rent" not in listed(file, capsys, "--overdue", today=date(2031, 5, 1))
    assert "pay rent" in listed(file, capsys, "--overdue", today=date(2031, 5, 2))


def test_a_bad_date_is_an_argparse_error(file, capsys):
    for text in ("soon", "2031-02-30", "2031-13-01"):
        with pytest.raises(SystemExit) as stopped:
            main(["--file", file, "add", "pay rent", "--due", text])
        assert stopped.value.code == 2
    assert "pay rent" not in listed(file, capsys)


def test_files_without_dates_still_load(file, capsys):
    items = [{"title": "old one", "done": False}, {"title": "old two", "done": True}]
    Path(file).write_text(json.dumps(items), encoding="utf-8")
    assert listed(file, capsys) == "1. [ ] old one\n2. [x] old two\n"
    run(file, "done", "1")
    assert "[x] old one" in listed(file, capsys)
