"""calledshot tables: a table at the terminal, as JSON, as files; and the page that documents the columns."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from commands import command
from recorded_runs import clearing_run, solved_run

from analysis.tables import MAKERS, TABLES
from analysis.tables.describe import tables_page
from harness.cli.tables import SHOWN

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_columns_is_current() -> None:
    page = (DOCS / "tables.md").read_text(encoding="utf-8")
    assert page == tables_page(), "renew it: python -m analysis.tables.describe > docs/tables.md"
    assert "| `amplification` | number | evaluated / new; 1 = ideal append |" in page


@pytest.mark.parametrize("name", list(TABLES))
def test_every_table_at_the_terminal_and_as_json(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solved_run(tmp_path)
    clearing_run(tmp_path)
    table = MAKERS[name](tmp_path)
    assert command("tables", str(tmp_path), "--table", name) == 0
    assert f"{len(table)} rows" in capsys.readouterr().out
    assert command("tables", str(tmp_path), "--table", name, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["table"] == name
    assert list(document["columns"]) == list(table.columns)
    assert len(document["rows"]) == len(table) > 0
    assert set(SHOWN[name]) <= set(table.columns)


def test_files_hold_the_same_table_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clearing_run(tmp_path / "runs")
    out = tmp_path / "new" / "tables"
    assert command("tables", str(tmp_path / "runs"), "--to", str(out)) == 0
    names = [Path(line).name for line in capsys.readouterr().out.split()]
    for name, make in MAKERS.items():
        assert {f"{name}.csv", f"{name}.json"} <= set(names)
        table = make(tmp_path / "runs")
        read = pd.read_csv(out / f"{name}.csv")
        assert list(read.columns) == list(table.columns)
        assert len(read) == len(table)
        assert len(json.loads((out / f"{name}.json").read_text())["rows"]) == len(table)


def test_parquet_keeps_types_and_nulls(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    clearing_run(tmp_path / "runs")
    assert command("tables", str(tmp_path / "runs"), "--to", str(tmp_path / "out")) == 0
    for name, make in MAKERS.items():
        table = make(tmp_path / "runs")
        table.attrs = {}
        read = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        pd.testing.assert_frame_equal(read, table, check_dtype=False)
        assert [str(t) for t in read.dtypes if str(t) in ("Int64", "Float64", "boolean")] == [
            str(t) for t in table.dtypes if str(t) in ("Int64", "Float64", "boolean")
        ]


def test_without_pyarrow_csv_and_json_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved_run(tmp_path / "runs")
    monkeypatch.setattr("analysis.tables.write.find_spec", lambda name: None)
    assert command("tables", str(tmp_path / "runs"), "--to", str(tmp_path / "out")) == 0
    assert {p.suffix for p in (tmp_path / "out").iterdir()} == {".csv", ".json"}
