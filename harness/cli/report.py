"""calledshot report, and what a sweep shows when it is done: tables, verdicts, the path of the report.

What needs pandas or matplotlib is imported where it is used: other commands need not wait for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.run import RUNS, STUDY, place
from harness.prereg.study import Study, StudyError, find_study
from harness.record.folder import find_runs
from harness.sweep.app import Request
from harness.sweep.compose import Place

REPORT = "report.html"
MOST_DETAILS = 5


def summary_of_sweep(where: Place, request: Request) -> None:
    """Tables, verdicts and cache cross-check on stdout; for an experiment of the study also the report."""
    from analysis.tables import cross_check
    from analysis.tables.join import line as cross_check_line
    from analysis.tables.join import words
    from analysis.terminal import print_tables
    from harness.prereg.adapters import check_study
    from harness.prereg.show import report_lines

    folder = where.runs / request.experiment
    if not any(r.finished for r in (find_runs(folder) if folder.exists() else [])):
        return
    print_tables(folder)
    study = _study(request.experiment, where)
    if study is not None:
        print()
        for line in report_lines(check_study(study, where.runs)):
            print(line)
    check = cross_check(folder)
    print(cross_check_line(check))
    for detail in check["details"][:MOST_DETAILS]:
        print(f"  {words(detail)}")
    if len(check["details"]) > MOST_DETAILS:
        print(f"  and {len(check['details']) - MOST_DETAILS} more, in the report")
    print(f"report: {make_report(where, request.experiment, study)}")


def make_report(where: Place, experiment: str, study: Study | None, out: Path | None = None) -> Path:
    """Writes the report of an experiment and returns its path."""
    from analysis.report import write_report
    from harness.prereg.adapters import check_study

    folder = where.runs / experiment
    verdicts: list[dict[str, Any]] = []
    if study is not None:
        verdicts = check_study(study, where.runs).as_json()["predictions"]
    return write_report(
        folder,
        verdicts,
        out or folder / REPORT,
        experiment_dir=None if study is None else study.folder,
        published=_published(where),
    )


def _study(experiment: str, where: Place) -> Study | None:
    """The experiment's study when it has predictions; a scratch run has none."""
    try:
        study = find_study(experiment, where.study)
    except StudyError:
        return None
    return study if study.predictions.is_file() else None


def _published(where: Place) -> Path | None:
    try:
        data = find_study("published", where.study).folder / "data" / "runs.yaml"
    except StudyError:
        return None
    return data if data.is_file() else None


def report_command(
    experiment: Annotated[str, typer.Argument(help="an experiment's name")],
    out: Annotated[
        Path | None, typer.Option("--out", help="where to write it; else runs/EXPERIMENT/report.html")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option("--tables", help="also write every table there, as CSV and JSON")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the path as one JSON document")] = False,
    study: STUDY = None,
    runs: RUNS = None,
) -> None:
    """Write an experiment's report: one HTML file that opens offline."""
    where = place(study, runs)
    path = make_report(where, experiment, _study(experiment, where), out)
    if tables is not None:
        from analysis.tables.write import write_tables

        for written in write_tables(where.runs / experiment, tables):
            print(written, file=sys.stderr)
    print(json.dumps({"report": str(path)}) if as_json else path)
