"""Run folders -> records in memory. What can't be read is a problem with one line, never a crash; the others go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.tables.columns import ARM, REPEATED, RUN
from analysis.tables.frame import TableError, frame
from analysis.tables.labels import short_labels
from harness.record.events import EventError, read_events
from harness.record.folder import RecordError, RunFolder, find_runs


@dataclass(frozen=True)
class Record:
    """One finished run. Events and grading are read when they are first asked for. label: a shorter name of its arm."""

    folder: RunFolder
    manifest: dict[str, Any]
    result: dict[str, Any]
    label: str | None = None

    @property
    def row(self) -> dict[str, Any]:
        """The row of the run table: result.json, repeated columns, the arm under its shorter name where it has one."""
        row = self.result | {name: self.result.get(other) for name, other in REPEATED.items()}
        return row if self.label is None else row | {"arm": self.label}

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """All events in order; raises EventError for a damaged file."""
        return list(read_events(self.folder.events))

    @cached_property
    def grading(self) -> dict[str, Any] | None:
        """grading.json, None for a run that was not graded; raises RecordError for a damaged file."""
        return self.folder.grading() if (self.folder.path / "grading.json").is_file() else None

    def named(self, label: str | None) -> Record:
        """The same run under a shorter name of its arm; events and grading that were read stay read."""
        other = replace(self, label=label)
        vars(other).update({k: v for k, v in vars(self).items() if k in ("events", "grading")})
        return other

    @property
    def arm(self) -> dict[str, Any]:
        """The columns that every table carries."""
        row = self.row
        return {name: row.get(name) for name in ("run_id", *ARM)}


@dataclass(frozen=True)
class Records:
    """The finished runs at or below a folder.

    unfinished: half runs, not counted. problems: one line per damaged folder. repeats: further runs of a cell and seed that
    is among the runs already; there to be compared with it (analysis/compare.py), not counted a second time.
    """

    root: Path
    runs: list[Record]
    unfinished: list[RunFolder] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    repeats: list[Record] = field(default_factory=list)

    def of_kind(self, kind: str) -> Records:
        """Only the runs of one kind: real, scripted or tape."""
        chosen, again = ([r for r in rows if r.result.get("kind") == kind] for rows in (self.runs, self.repeats))
        return Records(self.root, chosen, self.unfinished, self.problems, again)

    @property
    def kinds(self) -> list[str]:
        return sorted({str(r.result.get("kind")) for r in self.runs})


Source = Records | Path | str


def load(source: Source, *, need_events: bool = True, short_arms: bool = False) -> Records:
    """Reads every run folder at or below a path.

    A run whose manifest, result, grading or events can't be read is left out of all tables alike and named in `problems`.
    need_events=False looks at manifests and results only, which is quicker. short_arms: for readers, the arms' names leave
    out what all runs of the source have in common; tables to compute with keep the recorded names.

    Raises:
        RecordError: the folder does not exist.
    """
    if isinstance(source, Records):
        return source
    root = Path(source)
    runs: list[Record] = []
    unfinished: list[RunFolder] = []
    problems: list[str] = []
    for folder in find_runs(root):
        if not folder.finished:
            unfinished.append(folder)
            continue
        try:
            runs.append(_read(folder, need_events))
        except (RecordError, EventError, TableError) as e:
            problems.append(str(e))
    kept = {id(r) for r in _first_of_each(runs)}
    counted, repeats = ([r for r in runs if (id(r) in kept) is first] for first in (True, False))
    found = Records(root, counted, unfinished, problems, repeats)
    return _shortened(found) if short_arms else found


def _first_of_each(runs: Sequence[Record]) -> list[Record]:
    """One run for each run id of an experiment: the one whose folder lies nearest to the root, then first by name."""
    first: dict[tuple[Any, Any], Record] = {}
    for run in sorted(runs, key=lambda r: (len(r.folder.path.parts), r.folder.path)):
        first.setdefault((run.result.get("experiment"), run.result.get("run_id")), run)
    return list(first.values())


def _shortened(records: Records) -> Records:
    """The same runs under shorter names; what was read of them is not read again."""
    labels = short_labels([(r.manifest, r.result) for r in records.runs])
    runs = [r.named(label) for r, label in zip(records.runs, labels, strict=True)]
    return replace(records, runs=runs)


def _read(folder: RunFolder, need_events: bool) -> Record:
    manifest, result = folder.manifest(), folder.result()
    for name, value in (("manifest.json", manifest), ("result.json", result)):
        if not isinstance(value, dict):
            raise RecordError(f"{folder.path / name}: expected an object, got {type(value).__name__}")
    try:
        frame([result], RUN)
    except TableError as e:
        raise TableError(f"{folder.path / 'result.json'}: {e}") from e
    record = Record(folder, manifest, result)
    if need_events:
        _ = record.events, record.grading
    return record


def need_runs(records: Records, use: str) -> None:
    """Raises RecordError, one line with the first thing that is wrong, when there is no finished run. use: `to report on`."""
    if records.runs:
        return
    half = f"; {len(records.unfinished)} unfinished" if records.unfinished else ""
    wrong = f"; {records.problems[0]}" if records.problems else ""
    raise RecordError(f"{records.root}: no finished run {use}{half}{wrong}")


def folder_for(path: Path) -> Path:
    """Makes a folder for results; raises RecordError when a file is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as e:
        raise RecordError(f"{path}: a file is in the way; name a folder") from e
    return path


def all_problems(records: Records) -> Sequence[str]:
    """Problems, half runs and repeats: everything that was left out of the tables, one line each."""
    half = [f"{f.path}: not finished, not counted" for f in records.unfinished]
    again = [f"{r.folder.path}: a second run of the same cell and seed, not counted again" for r in records.repeats]
    return [*records.problems, *half, *again]
