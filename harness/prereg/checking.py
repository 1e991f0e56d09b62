"""`calledshot check`: predictions, registration, run folders and git, put together into one report.

A prediction that was amended, or whose file was edited without registering, gets one line per wording: both verdicts are
shown, each with its own provenance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.prereg.cells import Cell
from harness.prereg.history import History
from harness.prereg.predictions import Prediction, PredictionError, Predictions, load_predictions
from harness.prereg.provenance import LIMITS, Provenance, Standing, standing_of_run, standing_without_runs, worst
from harness.prereg.published import published_tables
from harness.prereg.records import Records, Summarise, read_records
from harness.prereg.refute import TRIES
from harness.prereg.registration import Registration, RegistrationError, Version, load_registration, sha256
from harness.prereg.score import Scores, score
from harness.prereg.study import Study, dirty_files
from harness.prereg.verdicts import Judged, judge
from harness.record.folder import canonical

Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Line:
    """One verdict line. version: of the registration it is worded by, None for the file as it stands unregistered."""

    judged: Judged
    standing: Standing
    version: int | None
    amended: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            **self.judged.as_json(),
            "provenance": str(self.standing.word),
            "provenance_why": self.standing.why,
            "notes": list(self.standing.notes),
            "version": self.version,
            "amended": self.amended,
        }


@dataclass(frozen=True)
class Report:
    """problems: everything that keeps the record from being whole, one line each. limits: what no check can catch."""

    experiment: str
    lines: tuple[Line, ...]
    problems: tuple[str, ...]
    scores: Scores
    limits: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True when every line's provenance holds, without notes, and nothing is missing, edited or foreign."""
        clean = all(line.standing.word.holds and not line.standing.notes for line in self.lines)
        return clean and not self.problems

    def as_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "predictions": [line.as_json() for line in self.lines],
            "problems": list(self.problems),
            "scores": self.scores.as_json(),
            "limits": list(self.limits),
        }


def check(
    study: Study,
    *,
    runs: Path | None = None,
    tables: Callable[[Path], Tables] | None = None,
    summarise: Summarise | None = None,
    grid: Sequence[Cell] | None = None,
    tries: int = TRIES,
) -> Report:
    """Judges an experiment and says where its predictions come from.

    runs: the folder of its runs. tables: run folders -> DataFrames. summarise: derives a result row again. grid: the cells as
    composed now; the registered ones go first. Experiments over published facts need none of these.

    Raises:
        PredictionError, RegistrationError: a file that can't be read.
    """
    predictions = load_predictions(study.predictions)
    if predictions.data:
        return _check_published(study, predictions, tries)
    if runs is None or tables is None or summarise is None:
        raise RegistrationError(f"{study.experiment}: its runs are needed to check it; name their folder")
    registration = load_registration(study.registration)
    _check_names(study, predictions, registration)
    cells = registration.all_cells() if registration else grid
    records = read_records(runs, study.experiment, cells, summarise)
    frames = tables(runs) if records.counted else {}
    history = History.of(study.root)

    def judged(what: Predictions, grid: Sequence[Cell] | None) -> dict[str, Judged]:
        chosen = records.within(grid)
        missing = chosen.missing(grid) if grid is not None else ()
        verdicts = judge(what, _frames(frames, chosen), grid=grid, missing=missing, tries=tries)
        return {j.prediction.id: j for j in verdicts.judged}

    if registration is None:
        standing = Standing(Provenance.UNREGISTERED, "there is no registration")
        lines = [Line(j, _unregistered(j, records, standing), None) for j in judged(predictions, grid).values()]
    else:
        lines = _registered_lines(study, predictions, registration, records, history, judged)
    problems = records.problems(cells) + _study_problems(study, registration, history)
    return Report(study.experiment, tuple(lines), tuple(problems), score([line.judged for line in lines]), LIMITS)


def _check_names(study: Study, predictions: Predictions, registration: Registration | None) -> None:
    if predictions.experiment != study.experiment:
        raise PredictionError(
            f"{study.predictions}: experiment: says {predictions.experiment!r}, but its folder is {study.experiment!r}"
        )
    if registration is not None and registration.experiment != study.experiment:
        raise RegistrationError(f"{study.registration}: this is the registration of {registration.experiment!r}")


def _check_published(study: Study, predictions: Predictions, tries: int) -> Report:
    facts = published_tables(study.folder / str(predictions.data))
    standing = Standing(
        Provenance.PUBLISHED, "worded after the articles that report them; judged on the facts they state"
    )
    lines = tuple(Line(j, standing, None) for j in judge(predictions, facts, tries=tries).judged)
    return Report(study.experiment, lines, (), score([line.judged for line in lines]), ())


def _registered_lines(
    study: Study,
    now: Predictions,
    registration: Registration,
    records: Records,
    history: History | None,
    judged: Callable[[Predictions, Sequence[Cell] | None], dict[str, Judged]],
) -> list[Line]:
    """One line per prediction, wording and cells, in the order of the first version that has it."""
    lines: list[Line] = []
    dirty = dirty_files(history, study.root) if history else []
    path = history.path_of(study.registration) if history else study.name_of(study.registration)
    seen: dict[str, list[tuple[Prediction, list[str]]]] = {}
    for version in registration.versions:
        results = judged(version.predictions(), version.cells)
        standing_of = {
            run.run_id: standing_of_run(run.manifest, study.experiment, version, registration, history)
            for run in records.within(version.cells).runs
        }
        for prediction in version.predictions().predictions:
            worded = (prediction, _covered(prediction, version.cells))
            if worded in seen.setdefault(prediction.id, []):
                continue
            seen[prediction.id].append(worded)
            result = results[prediction.id]
            standings = {
                run.run_id: standing_of[run.run_id]
                for run in records.counted
                if run.run_id in standing_of and _speaks_of(prediction, run.row)
            }
            standing = worst(standings) if standings else standing_without_runs(version, path, history, dirty)
            lines.append(Line(result, standing, version.number, version.reason))
    results = judged(now, registration.latest.cells)
    for prediction in now.predictions:
        if prediction not in [worded for worded, _ in seen.get(prediction.id, [])]:
            why = "predictions.yaml was edited since it was registered; this is the edited wording"
            lines.append(Line(results[prediction.id], Standing(Provenance.CHANGED, why), None))
    order = list(seen) + [p.id for p in now.predictions if p.id not in seen]
    return sorted(lines, key=lambda line: order.index(line.judged.prediction.id))


def _unregistered(judged: Judged, records: Records, standing: Standing) -> Standing:
    """Without a registration now, runs that name one tell that it was taken away."""
    named = sorted(
        {
            str(run.manifest["registration"]["digest"])[:12]
            for run in records.counted
            if run.manifest.get("registration") and _speaks_of(judged.prediction, run.row)
        }
    )
    if named:
        why = f"the runs were made under the registration {', '.join(named)}, which is gone"
        return Standing(Provenance.CHANGED, why)
    return standing


def _covered(prediction: Prediction, cells: Sequence[Cell]) -> list[str]:
    return sorted(canonical(cell.settings) for cell in cells if prediction.covers(cell.columns()) is not False)


def _speaks_of(prediction: Prediction, row: Mapping[str, Any]) -> bool:
    return prediction.covers(row) is not False


def _study_problems(study: Study, registration: Registration | None, history: History | None) -> list[str]:
    if registration is None:
        return []
    problems = [f"{path}: changed since it was registered" for path in _changed(study, registration.latest)]
    vacuous = registration.latest.vacuous
    if vacuous:
        problems.append(f"vacuous when registered (no table refuted them): {', '.join(vacuous)}")
    if history is not None:
        dirty = [f for f in dirty_files(history, study.root) if f == history.path_of(study.registration)]
        problems += [f"{f}: not committed" for f in dirty]
    return problems


def _changed(study: Study, version: Version) -> list[str]:
    files = {name: study.root / name for name in version.files}
    return [name for name, file in files.items() if not file.is_file() or sha256(file) != version.files[name]]


def _frames(frames: Tables, records: Records) -> dict[str, pd.DataFrame]:
    """The tables of the counted runs, the run table with the rows as derived again."""
    counted = {run.run_id: run for run in records.counted}
    kept = {
        name: frame[frame["run_id"].isin(list(counted))].reset_index(drop=True) if "run_id" in frame else frame
        for name, frame in frames.items()
    }
    runs = kept.get("runs")
    if runs is not None:
        rows = [{**row, **counted[str(row["run_id"])].row} for row in runs.astype(object).to_dict("records")]
        kept["runs"] = pd.DataFrame(rows, columns=None if rows else runs.columns, dtype=object)
    return kept
