"""A wrong path, an empty folder, an unreadable file, another program's log: one clear line on stderr, exit 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import command
from recorded_runs import solved_run

COMMANDS = {
    "tables": lambda path: ("tables", path),
    "tables json": lambda path: ("tables", path, "--json"),
    "compare": lambda path: ("compare", path, path),
    "replay": lambda path: ("replay", path),
    "gates": lambda path: ("gates", path),
    "export": lambda path: ("export", "inspect", path, path + "/out"),
    "report": lambda path: ("report", Path(path).name, "--runs", str(Path(path).parent)),
}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a refused command prints."""
    assert command(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    return lines[0]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_no_such_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, *COMMANDS[name](str(tmp_path / "nowhere")))
    assert "nowhere" in line


@pytest.mark.parametrize("name", list(COMMANDS))
def test_an_empty_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    line = refused(capsys, *COMMANDS[name](str(tmp_path / "empty")))
    assert "empty" in line
    assert "run" in line


@pytest.mark.parametrize("name", ["tables", "replay", "export", "report"])
def test_only_a_damaged_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line says what is wrong with the run, too."""
    solved_run(tmp_path).events.write_text("no event\n" * 3)
    assert "not a JSON event" in refused(capsys, *COMMANDS[name](str(tmp_path / "quick")))


def test_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "access.log"
    other.write_text('127.0.0.1 - - [30/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 12\n' * 50)
    nothing = tmp_path / "nothing.log"
    nothing.write_text("")
    for path in (tmp_path / "nowhere.log", other, nothing, tmp_path):
        line = refused(capsys, "log", "parse", str(path), "--json")
        assert str(path) in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "closed.log"
    path.write_text("srv  update_slots: all slots are idle\n")
    path.chmod(0)
    assert str(path) in refused(capsys, "log", "parse", str(path))


def test_a_run_whose_files_can_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder where a file should be: unreadable for root too."""
    folder = solved_run(tmp_path)
    folder.events.unlink()
    folder.events.mkdir()
    assert "can't be read" in refused(capsys, "tables", str(tmp_path))
    assert "can't be read" in refused(capsys, "compare", str(folder.path), str(folder.path))


def test_names_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solved_run(tmp_path)
    assert "known: runs, requests" in refused(capsys, "tables", str(tmp_path), "--table", "steps")
    (tmp_path / "file").write_text("")
    assert "file" in refused(capsys, "tables", str(tmp_path), "--to", str(tmp_path / "file"))
    assert "file" in refused(
        capsys, "report", "quick", "--runs", str(tmp_path), "--out", str(tmp_path / "file" / "r.html")
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("name", [*COMMANDS, "show"])
def test_a_run_folder_that_may_not_be_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named as such, not taken for a folder without runs."""
    folder = solved_run(tmp_path).path
    folder.chmod(0)
    try:
        asked = ("show", str(folder)) if name == "show" else COMMANDS[name](str(folder.parent))
        line = refused(capsys, *asked)
    finally:
        folder.chmod(0o755)
    assert str(folder) in line or name == "compare"
    assert "ermission denied" in line or "not readable" in line or name == "compare"


def test_a_log_that_does_not_fit_is_said_beside_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = solved_run(tmp_path)
    folder.server_log.write_text("GET / 200\n")
    assert command("tables", str(tmp_path), "--table", "requests", "--json") == 0
    assert capsys.readouterr().err.startswith(f"warning: {folder.server_log} is not a llama-server log")
