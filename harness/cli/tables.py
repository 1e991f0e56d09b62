"""calledshot tables: every table of some runs, at the terminal, as JSON, or as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.console import results

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 40
# What a terminal can hold, by column and heading; JSON and files have every column.
ARM = {"run_id": "run", "arm": "arm", "seed": "seed"}
SHOWN = {
    "runs": ARM
    | {
        "task": "task",
        "ended_how": "ended",
        "solved": "solved",
        "hidden_passed": "hidden",
        "hidden_total": "of",
        "requests": "requests",
        "truncated_answers": "cut",
        "clears": "clears",
        "reused_tokens": "reused",
        "evaluated_tokens": "evaluated",
        "seconds": "seconds",
    },
    "requests": ARM
    | {
        "step": "step",
        "outcome": "outcome",
        "prompt": "prompt",
        "reused": "reused",
        "new": "new",
        "recomputed": "recomputed",
        "generated": "written",
        "cause": "cause",
        "after_clear": "after clear",
        "log_matches": "as in log",
    },
    "clears": ARM
    | {
        "step": "step",
        "when": "when",
        "cleared": "cleared",
        "freed": "freed",
        "recomputed": "recomputed",
        "evaluated_pct": "evaluated %",
        "yield": "yield",
        "steps_to_next": "to next",
        "thrash": "thrash",
    },
    "commands": ARM
    | {
        "step": "step",
        "command": "command",
        "verdict": "verdict",
        "reason": "reason",
        "answer": "answer",
        "exit_code": "exit",
    },
    "tests": ARM | {"task": "task", "set": "set", "test": "test", "state": "state"},
}


def tables_command(
    runs: Annotated[Path, typer.Argument(help="a run folder, or a folder of them")],
    table: Annotated[str, typer.Option("--table", help="runs, requests, clears, commands or tests")] = "runs",
    as_json: Annotated[bool, typer.Option("--json", help="the table as one JSON document on standard output")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="write all tables there: CSV and JSON, parquet as well where pyarrow is installed"),
    ] = None,
) -> None:
    """Tables of finished runs; docs/tables.md says what every column means."""
    if table not in SHOWN:
        raise ValueError(f"--table {table}: no such table; known: {', '.join(SHOWN)}")
    # pandas takes a second to load, which a mistake need not wait for.
    from analysis.tables import MAKERS, load
    from analysis.tables.records import all_problems, need_runs
    from analysis.tables.write import as_document, write_tables

    records = load(runs, short_arms=not (as_json or to))
    need_runs(records, "to make tables of")
    left_out = all_problems(records)
    for problem in left_out:
        typer.echo(f"left out: {problem}", err=True)
    if to is not None:
        written = write_tables(records, to)
        for path in written:
            typer.echo(str(path), err=as_json)
        if not as_json:
            return
    found = MAKERS[table](records)
    for problem in found.attrs["problems"]:
        if problem not in left_out:
            typer.echo(f"warning: {problem}", err=True)
    if as_json:
        print(json.dumps({"table": table} | as_document(table, found), ensure_ascii=False, indent=1))
        return
    _print(table, found)


def _print(name: str, found: pd.DataFrame) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(show_edge=False, pad_edge=False)
    for column, heading in SHOWN[name].items():
        numeric = str(found[column].dtype) in ("Int64", "Float64")
        shown.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in found[list(SHOWN[name])].head(MOST_ROWS).itertuples(index=False):
        shown.add_row(*(Text(_cell(value)) for value in row))
    console = results(highlight=False)
    console.print(shown)
    rest = f", the first {MOST_ROWS} shown" if len(found) > MOST_ROWS else ""
    console.print(f"{len(found)} rows{rest}; {found.shape[1]} columns with --json or --to", markup=False)


def _cell(value: Any) -> str:
    from analysis.report.html import plain

    words = plain(value.item() if hasattr(value, "item") else value)
    return "-" if words == "not known" else words
