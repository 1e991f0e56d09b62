"""calledshot run: one run or a sweep."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from harness.cli.console import results
from harness.paths import study_root
from harness.record.folder import find_runs
from harness.sweep.app import Request, prepare, run
from harness.sweep.compose import Place, cells, hydra_session
from harness.sweep.plan import NEED_MODEL

STUDY = Annotated[Path | None, typer.Option("--study", help="folder with conf/ and experiments/; else the current one")]
RUNS = Annotated[Path | None, typer.Option("--runs", help="folder for run folders; else runs/ in the study")]


def place(study: Path | None, runs: Path | None) -> Place:
    root = study_root(study)
    return Place(root, (runs or root / "runs").resolve())


def run_command(
    context: typer.Context,
    multirun: Annotated[bool, typer.Option("--multirun", "-m", help="a sweep, as in Hydra")] = False,
    dry: Annotated[bool, typer.Option("--dry", help="list the cells, what is done, and the likely time")] = False,
    models: Annotated[bool, typer.Option("--models", help="print the models that the cells need, and stop")] = False,
    study: STUDY = None,
    runs: RUNS = None,
) -> None:
    """Run an agent: calledshot run task=cart agent=part3 seed=1, or a grid: calledshot run experiment=quick."""
    where = place(study, runs)
    if unknown := [a for a in context.args if a.startswith("-")]:
        raise ValueError(f"{unknown[0]}: no such option; settings are given as key=value")
    if models:
        print("\n".join(models_of(where, context.args, multirun)))
        return
    if dry:
        request = prepare(where, context.args, multirun)
        results().print(plan_table(request))
        print(likely_time(request, where))
        return
    request, outcomes = run(where, context.args, multirun, announce)
    # Imported here: pandas and matplotlib take a second that a dry run or a mistake need not wait for.
    from harness.cli.report import summary_of_sweep

    summary_of_sweep(where, request)
    failed = [o for o in outcomes if o.result is None]
    for outcome in failed:
        print(f"failed: {outcome.run_id}: {outcome.failure}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def models_of(where: Place, overrides: list[str], multirun: bool) -> list[str]:
    """The names of the catalogue's models that a request needs, each once; the files need not be here."""
    with hydra_session(where) as hydra:
        found = [c.settings for c in cells(hydra, [*where.overrides(), *overrides], multirun)]
    return list(dict.fromkeys(s.model.name for s in found if s.server.kind in NEED_MODEL and s.model.path is None))


def announce(request: Request) -> None:
    todo, total = len(request.todo), len(request.plans)
    name = request.experiment
    if todo == 0:
        print(f"{name}: all {total} runs are finished, nothing to run", file=sys.stderr)
    else:
        print(f"{name}: {total - todo} of {total} runs finished, {todo} to run", file=sys.stderr)


def plan_table(request: Request) -> Table:
    table = Table("run", "state", "cell", title=f"{request.experiment}: {len(request.plans)} cells")
    for one in request.plans:
        state = "finished" if one.folder.finished else "half" if one.folder.events.exists() else "to run"
        table.add_row(one.run_id, state, Text(one.label))
    return table


def likely_time(request: Request, where: Place) -> str:
    """From earlier runs of the same task and window where there are some, else from what the experiment's file says."""
    earlier: dict[tuple[str, int], list[float]] = {}
    if where.runs.exists():
        for folder in find_runs(where.runs):
            if folder.finished:
                row = folder.result()
                if row.get("kind") == "real" and row.get("seconds"):
                    earlier.setdefault((row["task"], row["n_ctx"]), []).append(row["seconds"])
    seconds, known = 0.0, 0
    for one in request.todo:
        times = earlier.get((one.settings.task.name, one.settings.server.n_ctx))
        guess = statistics.median(times) if times else one.experiment.get("seconds_per_run")
        if guess is not None:
            seconds += guess
            known += 1
    if not request.todo:
        return "nothing to run"
    if known == 0:
        return f"{len(request.todo)} runs; no earlier runs to guess the time from"
    whole = seconds * len(request.todo) / known
    time = f"{whole / 3600:.1f} hours" if whole > 5400 else f"{whole / 60:.0f} minutes"
    basis = "from earlier runs" if earlier else "as measured when the experiment was written"
    return f"{len(request.todo)} runs to go, about {time} ({basis})"
