"""A planned run: settings plus what the run id is made of. Nothing is started here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness.agent.run import check_names
from harness.external.program import program_identity
from harness.models import LocalModel, resolve, store_settings
from harness.record.folder import RunFolder, run_id
from harness.serving.scripted import scenario
from harness.serving.servers import server_build
from harness.serving.tape import tape_digest
from harness.settings import RunSettings, ServerSettings
from harness.sweep.compose import Cell, Place
from harness.workspace.tasks import Task, load_task

# Server kinds that load a model file themselves.
NEED_MODEL = ("embedded", "launch")


@dataclass(frozen=True)
class ServedName:
    """A model that some server serves under this name; its file is not ours to know."""

    name: str
    path: Path = Path()


@dataclass(frozen=True)
class RunPlan:
    """One run, ready to start; picklable. identity: what can change the result, and the run id is its hash."""

    settings: RunSettings
    experiment: dict[str, Any]
    overrides: tuple[str, ...]
    identity: dict[str, Any]
    task: Task
    model: LocalModel | None
    study: Path
    runs: Path

    @property
    def run_id(self) -> str:
        return run_id(self.identity)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.runs / self.experiment["name"] / self.run_id)

    @property
    def served(self) -> LocalModel | ServedName | None:
        """What the server is asked to serve: the file, or at an attached server the name; `served` means whatever is there."""
        asked = self.settings.model.name
        if self.settings.server.kind == "attach" and asked != "served":
            return ServedName(asked)
        return self.model

    @property
    def label(self) -> str:
        """A short name for people: what was asked for, else the task and agent."""
        asked = [o for o in self.overrides if not o.startswith("experiment=")]
        return " ".join(asked) or f"task={self.settings.task.name} agent={self.settings.agent.name}"


def plan(cell: Cell, place: Place) -> RunPlan:
    """Works out what a cell's run depends on.

    Raises:
        TaskError, ModelError, ServingError, SettingsError: what is missing, in one line.
    """
    settings = cell.settings
    check_names(settings)
    task = load_task(settings.task.path or settings.task.name, study=place.study)
    model = None
    if settings.server.kind in NEED_MODEL:
        model = resolve(settings.model.path or settings.model.name, store_settings(place.study))
    identity = {
        "harness": harness.__version__,
        "settings": settings.identity(),
        "task": task.digest,
        "model": None if model is None else model.sha256,
        "server_build": server_build(settings.server),
        "played": _played(settings.server, place.study),
    }
    external = program_identity(settings, place.study)
    if external is not None:
        identity["external"] = external
    return RunPlan(settings, cell.experiment, cell.overrides, identity, task, model, place.study, place.runs)


def scenario_folders(study: Path) -> tuple[Path, ...]:
    """Where a study keeps scenarios of its own."""
    return (study / "conf" / "scenarios",)


def _played(server: ServerSettings, study: Path) -> str | None:
    """The digest of the scenario or tape that stands in for a model, None for a real one."""
    if server.kind == "scripted":
        file = scenario.find(server.scenario or "", scenario_folders(study))
        return hashlib.sha256(file.read_bytes()).hexdigest()
    if server.kind == "tape":
        return tape_digest(Path(server.tape or ""))
    return None
