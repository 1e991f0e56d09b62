"""The run folders of an experiment, and whether each is what it says: of this grid, with its own id, its result untouched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.prereg.cells import Cell, describe, differing, flatten
from harness.record.events import EventError, read_events
from harness.record.folder import GRADING, RecordError, RunFolder, find_runs, run_id

Summarise = Callable[[dict[str, Any], Iterable[dict[str, Any]], dict[str, Any] | None], dict[str, Any]]


@dataclass(frozen=True)
class RunRecord:
    """A finished run. settings: flat. foreign: why it does not belong to the grid, None when it does. row: the result as
    derived again. edited: keys in which result.json differs from that, with both values."""

    run_id: str
    path: Path
    manifest: Mapping[str, Any]
    settings: Mapping[str, Any]
    row: Mapping[str, Any]
    edited: Mapping[str, tuple[Any, Any]]
    foreign: str | None = None


@dataclass(frozen=True)
class Records:
    """runs: finished ones. unreadable: folders that could not be read, with the reason. unfinished: names of half runs."""

    runs: tuple[RunRecord, ...]
    unreadable: Mapping[str, str]
    unfinished: tuple[str, ...]

    @property
    def counted(self) -> tuple[RunRecord, ...]:
        """The runs that belong to the grid; only these are judged."""
        return tuple(run for run in self.runs if run.foreign is None)

    def within(self, grid: Sequence[Cell] | None) -> Records:
        """Only the runs that belong to these cells; all of them when no grid is known."""
        runs = self.counted if grid is None else (r for r in self.counted if any(c.fits(r.settings) for c in grid))
        return Records(tuple(runs), {}, ())

    def missing(self, grid: Sequence[Cell]) -> tuple[Cell, ...]:
        """The cells of the grid without a finished run."""
        return tuple(cell for cell in grid if not any(cell.fits(run.settings) for run in self.counted))

    def problems(self, grid: Sequence[Cell] | None) -> list[str]:
        """One line for everything that is not as it should be."""
        lines = [f"{run.run_id}: left out: {run.foreign}" for run in self.runs if run.foreign]
        for run in self.runs:
            for key, (stated, derived) in run.edited.items():
                lines.append(
                    f"{run.run_id}: result.json was edited: {key} says {stated!r}, events and grading give {derived!r}"
                )
        lines += [f"{name}: left out: {why}" for name, why in self.unreadable.items()]
        if grid is None:
            return lines
        keys = differing(grid)
        for cell in grid:
            same = [run.run_id for run in self.counted if cell.fits(run.settings)]
            if len(same) > 1:
                lines.append(f"{describe(cell, keys)}: run more than once: {', '.join(same)}")
        lines += [f"{describe(cell, keys)}: no finished run" for cell in self.missing(grid)]
        return lines


def read_records(folder: Path, experiment: str, grid: Sequence[Cell] | None, summarise: Summarise) -> Records:
    """Reads all run folders below `folder`; a folder that can't be read is named, never skipped silently."""
    runs, unreadable, unfinished = [], {}, []
    for run in find_runs(folder) if folder.exists() else ():
        if not run.finished:
            unfinished.append(run.path.name)
            continue
        try:
            runs.append(_read(run, experiment, grid, summarise))
        except (RecordError, EventError) as e:
            unreadable[run.path.name] = str(e)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
            unreadable[run.path.name] = f"its record is not whole ({type(e).__name__}: {e})"
    return Records(tuple(runs), unreadable, tuple(unfinished))


def _read(run: RunFolder, experiment: str, grid: Sequence[Cell] | None, summarise: Summarise) -> RunRecord:
    manifest, stated = run.manifest(), run.result()
    grading = run.grading() if (run.path / GRADING).is_file() else None
    events = list(read_events(run.events))
    derived = summarise(manifest, events, grading)
    edited = {
        key: (stated.get(key), derived.get(key))
        for key in dict.fromkeys((*derived, *stated))
        if not _equal(stated.get(key), derived.get(key))
    }
    settings = flatten(manifest["settings"])
    foreign = _why_foreign(run, manifest, settings, events, experiment, grid)
    return RunRecord(str(manifest["run_id"]), run.path, manifest, settings, derived, edited, foreign)


def _why_foreign(
    run: RunFolder,
    manifest: Mapping[str, Any],
    settings: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    experiment: str,
    grid: Sequence[Cell] | None,
) -> str | None:
    if manifest["experiment"] != experiment:
        return f"it is a run of the experiment {manifest['experiment']!r}"
    if run_id(manifest["identity"]) != manifest["run_id"]:
        return "its manifest was edited: the run id does not fit the identity"
    if run.path.name != manifest["run_id"]:
        return f"its folder is named otherwise than its run id {manifest['run_id']}"
    for key, value in flatten(manifest["identity"].get("settings") or {}).items():
        if settings.get(key) != value:
            return f"its manifest was edited: {key} is {settings.get(key)!r}, its identity has {value!r}"
    start: Mapping[str, Any] = next((e for e in events if e["event"] == "start"), {})
    for name, key in (("n_ctx", "server.n_ctx"), ("seed", "seed")):
        if name in start and key in settings and start[name] != settings[key]:
            return f"its events say {name} {start[name]}, its manifest {settings[key]}"
    if grid is not None and not any(cell.fits(settings) for cell in grid):
        nearest = min(grid, key=lambda c: sum(settings.get(k) != v for k, v in c.settings.items()), default=Cell({}))
        wrong = [f"{k}={settings.get(k)!r}" for k, v in nearest.settings.items() if settings.get(k) != v]
        return f"no cell of the grid has its settings ({', '.join(wrong)})"
    return None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)
