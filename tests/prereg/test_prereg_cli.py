"""register, check and power as commands, on a study of its own with a grid that Hydra composes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main

from .lab import Lab

GRID = """\
# @package _global_
defaults:
  - override /server: scripted
  - override /task: cart

experiment:
  name: shot

server:
  scenario: nothing

hydra:
  mode: MULTIRUN
  sweeper:
    params:
      agent: part2,part3
      seed: 1,2,3
"""
PREDICTIONS = """\
experiment: shot
predictions:
- id: s-1
  wording: Part 3 solves it at least twice.
  cells: {agent: part3}
  claim: count(runs, solved) >= 2
  probability: 0.6
power:
  simulations: 40
  assumptions:
  - name: it helps
    rates:
    - {solved: 0.1}
    - {where: {agent: part3}, solved: 0.9}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path / "study", tmp_path / "study" / "runs")
    lab.folder.mkdir()
    lab.git("init", "-q", "-b", "main")
    lab.write("experiments/shot/predictions.yaml", PREDICTIONS)
    lab.write("experiments/shot/plan.md", "Does it help?\n")
    lab.write("conf/experiment/shot.yaml", GRID)
    lab.commit()
    return lab


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["calledshot", *arguments])
        code = 0
        try:
            main()
        except SystemExit as e:
            code = int(e.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_register_check_and_power(lab: Lab, called: Any) -> None:
    study = ("--study", str(lab.folder))
    code, out, err = called("register", "shot", *study)
    assert (code, err) == (0, "")
    assert "s-1: can lose: count(runs, solved) >= 2" in out
    assert "is false for runs: " in out
    assert 'git add experiments/shot/registration.json && git commit -m "Register shot"' in out

    code, out, _ = called("check", "shot", "--strict", *study)
    assert code == 1
    assert "s-1: UNDETERMINED (unregistered)" in out
    lab.commit("register")
    code, out, _ = called("check", "shot", "--json", *study)
    assert code == 0
    (line,) = json.loads(out)["predictions"]
    assert (line["id"], line["verdict"], line["provenance"]) == ("s-1", "undetermined", "registered")
    assert len(line["missing"]) == 3

    code, out, err = called("register", "shot", *study)
    assert (code, err) == (0, "")
    assert "already registered" in out

    code, out, _ = called("power", "shot", "--json", *study)
    assert code == 0
    power = json.loads(out)
    assert power["predictions"][0]["prediction"] == "s-1"
    assert power["separations"][0]["rates"] == [0.1, 0.9]
    assert "3 runs against 3" in power["remarks"][0]
    code, out, _ = called("power", "shot", "--seeds", "4", "--simulations", "10", *study)
    assert code == 0
    assert "4 seeds per arm (10 simulated grids)" in out


def test_published_facts_are_checked_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = called("check", "published", "--json", "--strict")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert len(document["predictions"]) == 22
    assert {p["provenance"] for p in document["predictions"]} == {"published"}


def test_wrong_requests_are_one_line_and_exit_2(lab: Lab, called: Any, tmp_path: Path) -> None:
    study = ("--study", str(lab.folder))
    for arguments, said in (
        (("check", "nope"), "experiments with predictions here: "),
        (("register", "published"), "there is nothing to register"),
        (("power", "published"), "there is nothing to simulate"),
        (("power", "shot", "--from", str(tmp_path / "none")), "none: no such folder"),
        (("power", "shot", "--simulations", "0"), "whole numbers above 0"),
    ):
        code, out, err = called(*arguments, *study)
        assert (code, out) == (2, ""), arguments
        assert said in err
        assert err.count("\n") == 1
    lab.write("dirty.txt", "x")
    code, _, err = called("register", "shot", *study)
    assert code == 2
    assert "these files are not committed: dirty.txt" in err
