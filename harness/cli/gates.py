"""`calledshot gates`: finish gates scored on recorded runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

ROWS = (
    ("moments", '"done" said'),
    ("believed_solved", "  believed, solved"),
    ("believed_unsolved", "  believed, not solved"),
    ("returned_unsolved", "  handed back, not solved"),
    ("returned_solved", "  handed back, solved"),
    ("unknown", "  not known"),
    ("right", "  right"),
    ("stopped", "runs it would have stopped"),
    ("stopped_solved", "  solved then"),
    ("earlier", "  before the recorded end"),
    ("beyond", "runs it would not have let end"),
)


def gates_command(
    runs: Annotated[list[Path], typer.Argument(help="run folders, or folders of them")],
    gate: Annotated[
        list[str] | None, typer.Option("--gate", help="none, tests_pass or evidence; several times; all by default")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
    study: Annotated[Path, typer.Option("--study", help="the study's folder, for tasks of its own")] = Path(),
) -> None:
    """When each finish gate would have stopped recorded runs, and whether it was right."""
    from analysis.gates import GATES, score_gates

    found = score_gates(runs, gate or GATES, study=study.resolve(), progress=lambda text: print(text, file=sys.stderr))
    for problem in found.problems:
        print(f"left out: {problem}", file=sys.stderr)
    if as_json:
        json.dump(found.document(), sys.stdout, ensure_ascii=False, indent=1)
        print()
        return
    _print(found.rows())


def _print(rows: list[dict[str, Any]]) -> None:
    """One table per kind of run, a column per gate."""
    from rich.console import Console
    from rich.table import Table

    for kind in dict.fromkeys(row["kind"] for row in rows):
        columns = [row for row in rows if row["kind"] == kind]
        first = columns[0]
        table = Table(f"{first['runs']} runs, {kind}", *(row["gate"] for row in columns))
        for column in table.columns[1:]:
            column.justify = "right"
        for key, title in ROWS:
            table.add_row(title, *(_cell(row[key]) for row in columns))
        Console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.0f} %" if isinstance(value, float) else str(value)
