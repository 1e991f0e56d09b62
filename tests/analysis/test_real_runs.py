"""Runs of the real embedded server: replies and log agree, and two cold runs of one cell and seed go the same way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.compare import compare_repeats
from analysis.report import write_report
from analysis.tables import cross_check, line, load, requests
from harness.models import ModelError, resolve
from harness.paths import shipped
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.run import execute

CELL = (
    *("task=cart", "agent=part3", "model=smollm2-135m", "seed=4", "server=embedded", "server.n_ctx=2048"),
    *("agent.max_steps=3", "server.max_tokens=24", "server.threads=1"),
)


def one_run(runs: Path) -> Path:
    (plan,) = prepare(Place(shipped("conf").parent, runs), CELL, False).plans
    outcome = execute(plan)
    assert outcome.failure is None
    return plan.folder.path


@pytest.mark.real
def test_a_real_run_twice(tmp_path: Path) -> None:
    try:
        resolve("smollm2-135m")
    except ModelError as e:
        pytest.skip(f"no small model here: {e}")
    first = one_run(tmp_path)
    one_run(tmp_path / "again")
    records = load(tmp_path)
    asked = requests(records)
    n = len(asked)
    assert n >= 1
    assert line(cross_check(records)) == f"replies {n}, log {n}, matched {n}, mismatched 0"
    assert asked["log_matches"].all()
    ((_, _, found),) = compare_repeats(records)
    assert found.same_cell
    assert found.cold == (True, True)
    assert found.first is None, found.line()

    log = first / "server.log"
    evaluated = int(asked["evaluated"].iloc[0])
    text, changed = re.subn(
        rf"(prompt eval time = +[\d.]+ ms / +){evaluated} tokens",
        rf"\g<1>{evaluated + 1} tokens",
        log.read_text(),
        count=1,
    )
    assert changed == 1
    log.write_text(text)
    page = write_report(tmp_path, [], tmp_path / "report.html", notebooks=()).read_text()
    assert f"replies {n}, log {n}, matched {n - 1}, mismatched 1" in page
    assert f"processed_tokens: log {evaluated + 1}, reply {evaluated}" in page
    assert "1 of 1 went the same way, times aside" in page
