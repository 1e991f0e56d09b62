"""Tables to files: CSV and JSON for each, parquet as well when pyarrow is there."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.tables import all_tables
from analysis.tables.columns import COLUMNS
from analysis.tables.records import Source, folder_for
from harness.record.folder import write_atomically


def write_tables(source: Source, dest: Path) -> list[Path]:
    """Writes runs, requests, clears, commands and tests to `dest` and returns the files in the order written.

    CSV leaves null empty; JSON holds {"columns": {name: meaning}, "rows": [...], "problems": [...]} with null as null.
    """
    folder_for(dest)
    written = []
    for name, table in all_tables(source).items():
        csv, document = dest / f"{name}.csv", dest / f"{name}.json"
        write_atomically(csv, table.to_csv(index=False))
        write_atomically(document, json.dumps(as_document(name, table), ensure_ascii=False, indent=1) + "\n")
        written += [csv, document]
        if find_spec("pyarrow") is not None:
            parquet = dest / f"{name}.parquet"
            table.to_parquet(parquet, index=False)
            written.append(parquet)
    return written


def as_document(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """A table as plain JSON values."""
    return {"columns": COLUMNS[name], "rows": rows_of(table), "problems": list(table.attrs.get("problems", []))}


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts of plain values; null is None."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]
