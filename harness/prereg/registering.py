"""`calledshot register`: checks predictions before they are locked, then writes registration.json.

Nothing is written unless everything fits: the claims parse over the declared tables, the cells exist in the grid, the tree
is clean. Whether each claim can lose is searched for and said; a vacuous claim is named, not refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.prereg.cells import Cell
from harness.prereg.history import History
from harness.prereg.language import Claim, ClaimError, Schema, parse
from harness.prereg.predictions import Prediction, Predictions, load_predictions
from harness.prereg.refute import TRIES, Example, find_example
from harness.prereg.registration import (
    Registration,
    RegistrationError,
    Version,
    load_registration,
    next_version,
    save_registration,
    task_digests,
)
from harness.prereg.study import Study, dirty_files
from harness.prereg.verdicts import schema_of


@dataclass(frozen=True)
class ClaimCheck:
    """refuted: a table on which the claim is false, None when none was found in `tries`. can_hold: one was found on which
    it is true."""

    prediction: str
    claim: str
    refuted: Example | None
    can_hold: bool
    tries: int

    def as_json(self) -> dict[str, Any]:
        return {
            "prediction": self.prediction,
            "claim": self.claim,
            "vacuous": self.refuted is None,
            "refuted_by": None if self.refuted is None else self.refuted.lines(),
            "can_hold": self.can_hold,
            "tries": self.tries,
        }


@dataclass(frozen=True)
class Registered:
    """What `register` did. version: the latest one. is_new: False when exactly this was registered already."""

    path: Path
    version: Version
    is_new: bool
    checks: tuple[ClaimCheck, ...]
    commit_command: str


def register(
    study: Study,
    cells: Sequence[Cell],
    tasks: Mapping[str, str] | Callable[[str], str],
    *,
    amend: str | None = None,
    tries: int = TRIES,
) -> Registered:
    """Registers an experiment.

    cells: the composed grid. tasks: digest of each task of the grid, by name. amend: why a registered experiment is
    changed; needed when there is a registration already and something differs.

    Raises:
        RegistrationError: with all problems, one line each; nothing was written then.
    """
    predictions = load_predictions(study.predictions)
    problems = _problems(study, predictions, cells)
    history = History.of(study.root)
    if history is None:
        problems.append(f"{study.root}: not in a git repository with a commit; git init, git add and git commit first")
    else:
        dirty = dirty_files(history, study.root)
        if dirty:
            problems.append(f"these files are not committed: {', '.join(dirty)}; commit them first, then register")
    if problems or history is None:
        raise RegistrationError(*problems)
    checks = check_claims(predictions, cells, tries)
    vacuous = list(dict.fromkeys(c.prediction for c in checks if c.refuted is None))
    before = load_registration(study.registration)
    digests = tasks if isinstance(tasks, Mapping) else task_digests(cells, tasks)
    if before is not None:
        again = next_version(study, before, cells, digests, None, "", ())
        if _same(again, before.latest):
            return Registered(study.registration, before.latest, False, tuple(checks), _commit_command(study))
        if not amend or not amend.strip():
            raise RegistrationError(
                f"{study.experiment} is registered and {_what_differs(again, before.latest)} since; "
                'to change a registered experiment say why: register --amend "REASON"'
            )
    version = next_version(
        study, before, cells, digests, amend.strip() if before and amend else None, history.head(), vacuous
    )
    registration = Registration(study.experiment, (*(before.versions if before else ()), version))
    save_registration(study.registration, registration)
    return Registered(study.registration, version, True, tuple(checks), _commit_command(study))


def check_claims(predictions: Predictions, cells: Sequence[Cell], tries: int = TRIES) -> list[ClaimCheck]:
    """For every claim of every prediction: a table that refutes it, if the search finds one."""
    schema = grid_schema(predictions, cells)
    checks = []
    for prediction in predictions.predictions:
        for text in [part.claim for part in prediction.parts] + ([prediction.means] if prediction.means else []):
            claim = parse(text, schema)
            refuted = find_example(claim, schema, prediction, cells, tries=tries)
            holds = find_example(claim, schema, prediction, cells, wanted=True, tries=tries)
            checks.append(ClaimCheck(prediction.id, claim.text, refuted, holds is not None, tries))
    return checks


def grid_schema(predictions: Predictions, cells: Sequence[Cell]) -> Schema:
    """The declared tables, where the columns of an arm hold the grid's values only."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for column, value in cell.columns().items():
            if isinstance(value, str) and column != "kind":
                values.setdefault(column, {})[value] = None
    return schema_of(predictions).with_values(values)


def _problems(study: Study, predictions: Predictions, cells: Sequence[Cell]) -> list[str]:
    problems = []
    if predictions.data:
        problems.append(
            f"{study.predictions}: judges published facts (data: {predictions.data}); there is nothing to register"
        )
    if predictions.experiment != study.experiment:
        problems.append(
            f"{study.predictions}: experiment: says {predictions.experiment!r}, but its folder is {study.experiment!r}"
        )
    for path, what in ((study.plan, "the plan (question, arms, why)"), (study.grid, "the grid")):
        if not path.is_file():
            problems.append(f"{path}: missing; {what} is part of what is registered")
    if not cells:
        problems.append(f"{study.grid}: the grid has no cells")
    schema = grid_schema(predictions, cells)
    for prediction in predictions.predictions:
        problems += _cell_problems(prediction, cells, schema)
        for text in [part.claim for part in prediction.parts] + ([prediction.means] if prediction.means else []):
            claim = _parsed(text, schema)
            if isinstance(claim, ClaimError):
                problems.append(f"{prediction.id}: {claim}\n{claim.caret()}")
    return problems


def _parsed(text: str, schema: Schema) -> Claim | ClaimError:
    try:
        return parse(text, schema)
    except ClaimError as e:
        return e


def _cell_problems(prediction: Prediction, cells: Sequence[Cell], schema: Schema) -> list[str]:
    problems = []
    arms = [cell.columns() for cell in cells]
    for column, wanted in prediction.cells.items():
        if column not in schema.tables["runs"]:
            problems.append(f"{prediction.id}: cells: the run table has no column {column!r}")
            continue
        there = list(dict.fromkeys(arm[column] for arm in arms if column in arm))
        for value in wanted:
            if value not in there and cells:
                known = ", ".join(str(v) for v in there) or "nothing"
                problems.append(f"{prediction.id}: cells: the grid has no {column} = {value!r}; it has {known}")
    if not problems and cells and not any(prediction.covers(arm) for arm in arms):
        problems.append(f"{prediction.id}: cells: no cell of the grid has all of these values")
    return problems


def _same(one: Version, other: Version) -> bool:
    return one.files == other.files and one.tasks == other.tasks and _settings(one) == _settings(other)


def _what_differs(now: Version, before: Version) -> str:
    changed = [name for name in now.files if now.files[name] != before.files.get(name)]
    changed += [f"task {name}" for name in now.tasks if now.tasks[name] != before.tasks.get(name)]
    if _settings(now) != _settings(before):
        changed.append("the composed grid")
    return f"{', '.join(changed)} changed"


def _settings(version: Version) -> list[str]:
    return sorted(repr(sorted(cell.settings.items())) for cell in version.cells)


def _commit_command(study: Study) -> str:
    file = study.name_of(study.registration)
    return f'git add {file} && git commit -m "Register {study.experiment}" -- {file}'
