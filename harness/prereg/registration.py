"""registration.json: what was locked, version by version.

Each version holds the digests of the predictions, the plan, the grid's file and the tasks, the composed cells, and the
predictions' text itself, so that an amended or edited file can always be judged beside what it was. A version's digest
covers all of that and the digest of the version before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.prereg.cells import Cell, differing
from harness.prereg.history import History
from harness.prereg.predictions import Predictions, parse_predictions
from harness.prereg.study import Study
from harness.record.folder import RecordError, canonical, read_json, write_json

FORMAT = 1


class RegistrationError(ValueError):
    """A registration that can't be made or read. problems: one line each."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class Version:
    """One registered state. number: 1, 2, …; reason: why it was amended, None for the first. files: path from the
    study's root -> sha256. tasks: name -> digest. text: predictions.yaml as registered. parent: HEAD at that moment.
    vacuous: ids of predictions for which no refuting table was found."""

    number: int
    digest: str
    reason: str | None
    files: Mapping[str, str]
    tasks: Mapping[str, str]
    cells: tuple[Cell, ...]
    text: str
    parent: str
    vacuous: tuple[str, ...] = ()

    def predictions(self) -> Predictions:
        return parse_predictions(self.text, f"predictions.yaml as registered (version {self.number})")


@dataclass(frozen=True)
class Registration:
    experiment: str
    versions: tuple[Version, ...]

    @property
    def latest(self) -> Version:
        return self.versions[-1]

    def all_cells(self) -> tuple[Cell, ...]:
        """The cells of every version, each once: a cell that an amendment dropped still counts for the version before."""
        found: dict[str, Cell] = {}
        for cell in (cell for version in self.versions for cell in version.cells):
            found.setdefault(canonical(cell.settings), cell)
        return tuple(found.values())

    def with_digest(self, digest: object) -> Version | None:
        return next((version for version in self.versions if version.digest == digest), None)


def digest_of(
    experiment: str,
    files: Mapping[str, str],
    tasks: Mapping[str, str],
    cells: Sequence[Cell],
    reason: str | None,
    previous: str | None,
) -> str:
    """The digest of one version; the order of cells does not matter."""
    settings = sorted((dict(cell.settings) for cell in cells), key=canonical)
    content = {
        "experiment": experiment,
        "files": files,
        "tasks": tasks,
        "cells": settings,
        "reason": reason,
        "previous": previous,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def next_version(
    study: Study,
    before: Registration | None,
    cells: Sequence[Cell],
    tasks: Mapping[str, str],
    reason: str | None,
    parent: str,
    vacuous: Sequence[str],
) -> Version:
    """The version that the study's files make now."""
    files = {study.name_of(path): sha256(path) for path in (study.predictions, study.plan, study.grid)}
    previous = before.latest.digest if before else None
    return Version(
        number=len(before.versions) + 1 if before else 1,
        digest=digest_of(study.experiment, files, tasks, cells, reason, previous),
        reason=reason,
        files=files,
        tasks=dict(tasks),
        cells=tuple(cells),
        text=study.predictions.read_bytes().decode("utf-8"),
        parent=parent,
        vacuous=tuple(vacuous),
    )


def load_registration(path: Path) -> Registration | None:
    """The registration in a file, None when there is no file.

    Raises:
        RegistrationError: it can't be read, or its digests do not fit its content (edited by hand).
    """
    if not path.is_file():
        return None
    try:
        return from_json(read_json(path), str(path))
    except RecordError as e:
        raise RegistrationError(str(e)) from e


def from_json(document: Any, where: str) -> Registration:
    """The registration from its JSON document; `where` names it in errors."""
    try:
        if document["format"] != FORMAT:
            raise RegistrationError(f"{where}: registration format {document['format']}, this version reads {FORMAT}")
        experiment = document["experiment"]
        versions = tuple(_version(entry) for entry in document["versions"])
    except (KeyError, TypeError, AttributeError) as e:
        raise RegistrationError(f"{where}: does not have the form of a registration ({e!r})") from e
    if not versions:
        raise RegistrationError(f"{where}: holds no version")
    previous = None
    for number, version in enumerate(versions, 1):
        expected = digest_of(experiment, version.files, version.tasks, version.cells, version.reason, previous)
        text_digest = hashlib.sha256(version.text.encode()).hexdigest()
        fits_text = version.files.get(f"experiments/{experiment}/predictions.yaml") == text_digest
        if version.digest != expected or version.number != number or not fits_text:
            raise RegistrationError(
                f"{where}: version {number} was edited by hand: its digest does not fit its content"
            )
        previous = version.digest
    return Registration(experiment, versions)


def save_registration(path: Path, registration: Registration) -> None:
    write_json(
        path,
        {
            "format": FORMAT,
            "experiment": registration.experiment,
            "digest": registration.latest.digest,
            "versions": [_plain(version) for version in registration.versions],
        },
    )


def registration_facts(study_root: Path, experiment: str) -> dict[str, Any] | None:
    """The `registration` entry of a run's manifest: the registration that stands now; None when there is none.

    `commit` is the commit that brought in its latest version, null when that is not committed; `file` its path from the
    repository's top folder (from the study's root without a repository).

    Raises:
        RegistrationError: registration.json can't be read or was edited by hand.
    """
    study = Study(study_root, experiment)
    registration = load_registration(study.registration)
    if registration is None:
        return None
    history = History.of(study_root)
    file = history.path_of(study.registration) if history else study.name_of(study.registration)
    digest = registration.latest.digest
    return {
        "experiment": registration.experiment,
        "digest": digest,
        "commit": introduced(history, file, digest) if history else None,
        "file": file,
    }


def introduced(history: History, path: str, digest: str) -> str | None:
    """The oldest commit of the present history in which the registration file holds a version with this digest."""
    for commit in history.commits_touching(path):
        if digest in digests_at(history, commit, path):
            return commit
    return None


def digests_at(history: History, commit: str, path: str) -> tuple[str, ...]:
    """The digests of all versions the registration file held in a commit; none when it was not there or not whole."""
    found = registration_at(history, commit, path)
    return tuple(version.digest for version in found.versions) if found else ()


def registration_at(history: History, commit: str, path: str) -> Registration | None:
    """The registration as it was in a commit."""
    content = history.file_at(commit, path)
    if content is None:
        return None
    try:
        return from_json(json.loads(content), f"{path} in {commit[:12]}")
    except ValueError:
        return None


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def task_digests(cells: Sequence[Cell], digest: Callable[[str], str]) -> dict[str, str]:
    """The digest of every task of a grid; `digest` gives that of one task by name."""
    names = dict.fromkeys(str(cell.settings["task.name"]) for cell in cells if "task.name" in cell.settings)
    return {name: digest(name) for name in names}


def _plain(version: Version) -> dict[str, Any]:
    keys = differing(version.cells)
    common = {k: v for k, v in version.cells[0].settings.items() if k not in keys} if version.cells else {}
    return {
        "number": version.number,
        "digest": version.digest,
        "reason": version.reason,
        "parent": version.parent,
        "files": dict(version.files),
        "tasks": dict(version.tasks),
        "vacuous": list(version.vacuous),
        "grid": {
            "common": common,
            "cells": [{k: c.settings[k] for k in keys if k in c.settings} for c in version.cells],
        },
        "predictions": version.text,
    }


def _version(entry: Mapping[str, Any]) -> Version:
    grid = entry["grid"]
    return Version(
        number=entry["number"],
        digest=entry["digest"],
        reason=entry["reason"],
        files=dict(entry["files"]),
        tasks=dict(entry["tasks"]),
        cells=tuple(Cell({**grid["common"], **cell}) for cell in grid["cells"]),
        text=entry["predictions"],
        parent=entry["parent"],
        vacuous=tuple(entry["vacuous"]),
    )
