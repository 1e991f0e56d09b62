"""calledshot register, check and power. `harness/cli/main.py` mounts the three functions as commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.run import RUNS, STUDY, place
from harness.prereg.predictions import PredictionError, load_predictions
from harness.prereg.study import find_study

EXPERIMENT = Annotated[str, typer.Argument(help="an experiment: a folder of experiments/")]
JSON = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]


def register_command(
    experiment: EXPERIMENT,
    amend: Annotated[str | None, typer.Option("--amend", help="why a registered experiment is changed")] = None,
    study: STUDY = None,
    runs: RUNS = None,
    as_json: JSON = False,
) -> None:
    """Lock an experiment's predictions, plan, grid and tasks; says for each claim how it can lose."""
    from harness.prereg.adapters import compose_grid
    from harness.prereg.registering import register
    from harness.prereg.show import registered_lines

    where = place(study, runs)
    found = find_study(experiment, where.study)
    if load_predictions(found.predictions).data:
        raise PredictionError(f"{found.predictions}: judges published facts; there is nothing to register")
    grid = compose_grid(found, where.runs)
    done = register(found, grid.cells, grid.tasks, amend=amend)
    if as_json:
        document = {
            "experiment": experiment,
            "digest": done.version.digest,
            "version": done.version.number,
            "new": done.is_new,
            "commit_command": done.commit_command,
            "claims": [check.as_json() for check in done.checks],
        }
        print(json.dumps(document, ensure_ascii=False))
        return
    for line in registered_lines(done):
        print(line)


def check_command(
    experiment: EXPERIMENT,
    strict: Annotated[
        bool, typer.Option("--strict", help="exit 1 when provenance or the record does not hold")
    ] = False,
    study: STUDY = None,
    runs: RUNS = None,
    as_json: JSON = False,
) -> None:
    """Judge an experiment's predictions: verdicts, the numbers behind them, and whether they came before the runs."""
    from harness.prereg.adapters import check_study
    from harness.prereg.show import report_lines

    where = place(study, runs)
    report = check_study(find_study(experiment, where.study), where.runs)
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for line in report_lines(report):
            print(line)
    if strict and not report.holds:
        raise typer.Exit(1)


def power_command(
    experiment: EXPERIMENT,
    seeds: Annotated[list[int] | None, typer.Option("--seeds", help="seeds per arm to try; may be given often")] = None,
    earlier: Annotated[Path | None, typer.Option("--from", help="run folders of earlier runs to draw from")] = None,
    simulations: Annotated[int | None, typer.Option("--simulations", help="simulated grids per assumption")] = None,
    study: STUDY = None,
    runs: RUNS = None,
    as_json: JSON = False,
) -> None:
    """Simulate an experiment before running it: how often each claim would hold, how many seeds tell arms apart."""
    from harness.prereg.adapters import compose_grid, tables_of_runs
    from harness.prereg.assumptions import power_plan
    from harness.prereg.power import simulate
    from harness.prereg.show import power_lines
    from harness.prereg.verdicts import schema_of

    where = place(study, runs)
    found = find_study(experiment, where.study)
    predictions = load_predictions(found.predictions)
    if predictions.data:
        raise PredictionError(f"{found.predictions}: judges published facts; there is nothing to simulate")
    section = dict(predictions.power or {})
    if seeds:
        section["seeds"] = seeds
    if simulations is not None:
        section["simulations"] = simulations
    plan = power_plan(section, schema_of(predictions), str(found.predictions))
    if not plan.assumptions and earlier is None:
        raise PredictionError(f"{found.predictions}: power: needs assumptions, or earlier runs (--from FOLDER)")
    tables = None if earlier is None else tables_of_runs(earlier)
    report = simulate(predictions, compose_grid(found, where.runs).cells, plan, earlier=tables)
    if as_json:
        print(json.dumps({"experiment": experiment, **report.as_json()}, ensure_ascii=False))
        return
    for line in power_lines(report):
        print(line)
