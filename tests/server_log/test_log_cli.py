"""``log parse`` at the terminal."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path

import pytest
from log_renderer import FORMATS, Spec
from typer.testing import CliRunner

from analysis.server_log import parse, to_json
from analysis.server_log.cli import log_app

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.log"))
runner = CliRunner()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_json_is_the_document_and_nothing_else(path):
    result = runner.invoke(log_app, ["parse", str(path), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == to_json(parse(path))


def test_json_of_a_log_with_a_restart(tmp_path):
    text = SAMPLES[0].read_text()
    path = tmp_path / "twice.log"
    path.write_text(text + text)
    document = json.loads(runner.invoke(log_app, ["parse", str(path), "--json"]).stdout)
    assert [row["run"] for row in document["requests"]] == [0, 0, 0, 1, 1, 1]


def test_table_and_warnings():
    path = next(path for path in SAMPLES if path.stem == "journald-blob-data")
    result = runner.invoke(log_app, ["parse", str(path)], env={"COLUMNS": "160"})
    assert result.exit_code == 0
    assert "~46" in result.stdout
    assert "2 requests, era C, wrapper journald" in result.stdout
    assert "6 lines lost to journald" in result.stderr


def test_control_characters_of_a_log_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "repaints.log"
    text = next(path for path in SAMPLES if path.stem == "tool-parse-500-after-timings").read_text()
    path.write_text(text.replace("at pos 12", "at\x07 \x9b2J pos 12"))
    shown = runner.invoke(log_app, ["parse", str(path)]).stdout
    assert "Failed to parse input at" in shown
    assert all(c.isprintable() or c == "\n" for c in shown)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_memory_does_not_grow_with_the_log(tmp_path, monkeypatch, options):
    form = next(form for form in FORMATS if form.name == "E")
    peaks = []
    for requests in (2000, 20000):
        path = tmp_path / f"{requests}.log"
        with path.open("w", newline="\n") as file:
            for n in range(requests):
                file.write("\n".join(form.write(Spec(0, 60 * n, n, 24, 52, 410.1, 2600.0))) + "\n")
        with (tmp_path / "out").open("w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            tracemalloc.start()
            log_app(["parse", str(path), *options], standalone_mode=False)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            monkeypatch.undo()
        assert sum(1 for _ in (tmp_path / "out").open()) >= requests
    assert peaks[1] < 1.5 * peaks[0]


def test_standard_input():
    path = next(path for path in SAMPLES if path.stem == "windows-crlf-keyvalue")
    result = runner.invoke(log_app, ["parse", "-", "--json"], input=path.read_bytes())
    assert json.loads(result.stdout)["requests"] == to_json(parse(path))["requests"]


def test_bad_input_is_one_line_and_exit_2(tmp_path):
    result = runner.invoke(log_app, ["parse", str(tmp_path / "nowhere.log"), "--json"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("calledshot: ")
    assert "nowhere.log" in result.stderr
