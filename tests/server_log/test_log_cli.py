"""``log parse`` at the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
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
