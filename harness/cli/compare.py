"""calledshot compare: two runs side by side, up to the first step at which they differ."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from harness.cli.run import RUNS, STUDY, place
from harness.cli.show import find_run


def compare_command(
    first: Annotated[str, typer.Argument(metavar="RUN", help="a run folder, or a run id (its first digits will do)")],
    second: Annotated[str, typer.Argument(metavar="RUN", help="another one; of the same cell, or of any other")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
    runs: RUNS = None,
    study: STUDY = None,
) -> None:
    """The first step at which two runs differ, and in what; times aside."""
    from analysis.compare import compare

    where = place(study, runs).runs
    a, b = find_run(first, where), find_run(second, where)
    found = compare(a, b)
    if as_json:
        print(json.dumps(found.document(), ensure_ascii=False, indent=1))
        return
    print(f"first:  {a.path}")
    print(f"second: {b.path}")
    print("same cell and seed" if found.same_cell else "settings that differ:")
    for key, (x, y) in found.settings.items():
        print(f"  {key}: {x} | {y}")
    for name, folder in (("first", a), ("second", b)):
        if not folder.finished:
            print(f"the {name} run is not finished")
    print(found.line())
    for path, x, y in found.shown():
        print(f"  {path}\n    {x}\n    {y}")
