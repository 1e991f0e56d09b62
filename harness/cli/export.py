"""calledshot export: run folders in other programs' formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

export_app = typer.Typer(help="Run folders in other programs' formats.", no_args_is_help=True)


@export_app.callback()
def _export() -> None:
    """Run folders in other programs' formats."""


@export_app.command("inspect")
def inspect_command(
    runs: Annotated[Path, typer.Argument(help="a run folder, or a folder of them")],
    dest: Annotated[Path, typer.Argument(help="a folder for the logs; it is made when it is not there")],
) -> None:
    """Logs for Inspect's viewer (inspect view --log-dir DEST); needs inspect-ai, which is the extra `inspect`."""
    from analysis.export_inspect import export

    written, left_out = export(runs, dest)
    for problem in left_out:
        typer.echo(f"left out: {problem}", err=True)
    for path in written:
        typer.echo(str(path))
