"""What the commands need of the other rooms: the composed grid, the tasks' digests, tables of runs, rows derived again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.tables import all_tables
from harness.prereg.cells import Cell
from harness.prereg.checking import Report, check
from harness.prereg.registration import load_registration
from harness.prereg.study import Study
from harness.record.folder import RecordError
from harness.record.summary import summarise
from harness.settings import RunSettings
from harness.sweep.compose import Place, cells, hydra_session
from harness.workspace.tasks import load_task


@dataclass(frozen=True)
class Grid:
    """cells: one per run that is to be made. tasks: name -> digest."""

    cells: tuple[Cell, ...]
    tasks: Mapping[str, str]


def compose_grid(study: Study, runs: Path) -> Grid:
    """The grid of an experiment as Hydra composes it now.

    Raises:
        SettingsError, TaskError: a grid that can't be composed, in one line.
    """
    settings = _settings(study, runs)
    places = {s.task.name: s.task.path or s.task.name for s in settings}
    tasks = {name: load_task(place, study=study.root).digest for name, place in places.items()}
    return Grid(tuple(Cell(s.identity()) for s in settings), tasks)


def check_study(study: Study, runs: Path) -> Report:
    """`check` on the study's own runs below `runs`/<experiment>; see there."""
    composed = study.grid.is_file() and load_registration(study.registration) is None
    grid = tuple(Cell(s.identity()) for s in _settings(study, runs)) if composed else None
    return check(study, runs=runs / study.experiment, tables=all_tables, summarise=summarise, grid=grid)


def tables_of_runs(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of earlier runs, for the power simulation.

    Raises:
        RecordError: no finished run there.
    """
    tables = all_tables(folder)
    if tables["runs"].empty:
        raise RecordError(f"{folder}: no finished run to draw from")
    return tables


def _settings(study: Study, runs: Path) -> list[RunSettings]:
    place = Place(study.root, runs)
    with hydra_session(place) as hydra:
        asked = [*place.overrides(), f"experiment={study.experiment}"]
        return [cell.settings for cell in cells(hydra, asked, multirun=False)]
