"""The tables in the terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from recorded_runs import false_run, solved_run
from rich.console import Console

from analysis.terminal import print_tables


def test_tables_of_each_kind_and_problems_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    false_run(tmp_path, seed=3, task="cart [bold]x")
    solved_run(tmp_path, kind="scripted")
    (solved_run(tmp_path, seed=1).path / "result.json").unlink()
    out = StringIO()
    print_tables(tmp_path, console=Console(file=out, width=160))
    text = out.getvalue()
    for expected in (
        "Outcomes (real runs)",
        "Outcomes (scripted runs)",
        "finished 1",
        "2/4*",
        "cart [bold]x",
        "1 of 1 (100 %, 21 to 100 %)",
    ):
        assert expected in text
    assert "not finished, not counted" in capsys.readouterr().err
    assert "not finished" not in text
