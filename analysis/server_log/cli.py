"""``calledshot log``: read llama-server logs at the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from analysis.server_log.document import write_json
from analysis.server_log.errors import LogError
from analysis.server_log.parser import LogStream, stream
from analysis.server_log.rows import RequestRow

log_app = typer.Typer(help="Read llama-server logs.", no_args_is_help=True)


@log_app.callback()
def _log() -> None:
    """Read llama-server logs."""


@log_app.command("parse")
def parse_command(
    file: Annotated[Path, typer.Argument(help="A llama-server log, of any build; - reads standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """One row per request of a server log."""
    log = stream(sys.stdin.buffer if str(file) == "-" else file)
    try:
        if as_json:
            write_json(log, sys.stdout)
        else:
            _print(log)
    except LogError as error:
        typer.echo(f"calledshot: {error}", err=True)
        sys.exit(2)  # holds under any caller, also one that runs the app with standalone_mode off


COLUMNS = ("slot", "task", "prompt", "cached", "read", "written", "prompt ms", "eval ms", "status")


def _print(log: LogStream) -> None:
    console = Console()
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption="~ follows by arithmetic; - the log does not say",
        caption_justify="left",
    )
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "status" else "right", no_wrap=True)
    errors: list[str] = []
    rows = 0
    for row in log:
        rows += 1
        table.add_row(*_cells(row))
        if row.error:
            errors.append(f"task {row.task}: {row.error}")
    console.print(table)
    for error in errors:
        console.print(error, highlight=False, markup=False, soft_wrap=True)
    console.print(f"{rows} requests, era {log.era or 'unknown'}, wrapper {log.wrapper}", highlight=False, markup=False)
    for warning in log.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _cells(row: RequestRow) -> tuple[str, ...]:
    slot = "-" if row.slot is None else str(row.slot)
    return (
        f"{row.instance}:{slot}" if row.instance else slot,
        f"{row.run}/{row.task}" if row.run else str(row.task),
        _count(row.prompt_tokens, row.prompt_tokens_derived),
        _count(row.cached_tokens, row.cached_tokens_derived),
        _count(row.processed_tokens, row.processed_tokens_derived),
        _count(row.generated_tokens, row.generated_tokens_derived),
        "-" if row.prompt_ms is None else f"{row.prompt_ms:.2f}",
        "-" if row.eval_ms is None else f"{row.eval_ms:.2f}",
        row.status or "open",
    )


def _count(printed: int | None, derived: int | None) -> str:
    if printed is not None:
        return str(printed)
    return "-" if derived is None else f"~{derived}"
