"""``calledshot log``: read llama-server logs at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from analysis.server_log.document import write_json
from analysis.server_log.errors import LogError
from analysis.server_log.parser import LogStream, stream
from analysis.server_log.rows import RequestRow
from harness.agent.approval.answer import printable

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


COLUMNS = {
    "slot": 6,
    "task": 9,
    "prompt": 8,
    "cached": 8,
    "read": 8,
    "written": 8,
    "prompt ms": 11,
    "eval ms": 11,
}
"""Widths: a row is printed as soon as it is known, so that a log of any size takes no more memory than a small one."""


def _print(log: LogStream) -> None:
    rows = 0
    for row in log:
        if not rows:
            sys.stdout.write(_line(COLUMNS, "status") + "\n")
        rows += 1
        *cells, status = _cells(row)
        sys.stdout.write(_line(cells, status) + "\n")
        if row.error:
            sys.stdout.write(f"    task {row.task}: {printable(row.error)}\n")
    sys.stdout.write(f"{rows} requests, era {log.era or 'unknown'}, wrapper {log.wrapper}\n")
    sys.stdout.write("~ follows by arithmetic; - the log does not say\n")
    for warning in log.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _line(cells: Iterable[str], status: str) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)) + f"  {status}"


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
