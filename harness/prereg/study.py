"""Where a study keeps an experiment's files, and what git says about the study when a run begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.paths import shipped
from harness.prereg.history import History

# What the harness itself writes into a study; it is not part of what was registered and does not make the tree dirty.
OUTPUTS = ("runs/", "outputs/", "multirun/")
_NAME = "experiments"


class StudyError(ValueError):
    """An experiment that can't be found; one line with the mend."""


@dataclass(frozen=True)
class Study:
    """The files of one experiment. root: the folder that holds conf/ and experiments/."""

    root: Path
    experiment: str

    @property
    def folder(self) -> Path:
        return self.root / _NAME / self.experiment

    @property
    def predictions(self) -> Path:
        return self.folder / "predictions.yaml"

    @property
    def plan(self) -> Path:
        return self.folder / "plan.md"

    @property
    def grid(self) -> Path:
        return self.root / "conf" / "experiment" / f"{self.experiment}.yaml"

    @property
    def registration(self) -> Path:
        return self.folder / "registration.json"

    def name_of(self, file: Path) -> str:
        """A file's path from the study's root, with forward slashes."""
        return file.relative_to(self.root).as_posix()


def find_study(experiment: str, root: Path) -> Study:
    """The experiment in the study at `root`, else the one of that name that comes with the harness.

    Raises:
        StudyError: neither has it.
    """
    if not experiment or "/" in experiment or experiment.startswith("."):
        raise StudyError(f"{experiment!r} is not the name of an experiment; names are folders of experiments/")
    candidates = [Study(root, experiment), Study(shipped(_NAME).parent, experiment)]
    for study in candidates:
        if study.predictions.is_file():
            return study
    known = sorted({p.parent.name for s in candidates for p in (s.root / _NAME).glob("*/predictions.yaml")})
    names = ", ".join(known) or "none"
    raise StudyError(f"{candidates[0].predictions}: no such file; experiments with predictions here: {names}")


def study_facts(root: Path) -> dict[str, Any]:
    """The `study` entry of a run's manifest: what git says about the folder that holds conf/ and experiments/.

    `commit` and `clean` are null where there is no history; `dirty` names files from the repository's top folder.
    """
    history = History.of(root)
    if history is None:
        return {"root": str(root.resolve()), "commit": None, "clean": None, "dirty": [], "shallow": None}
    dirty = dirty_files(history, root)
    return {
        "root": str(root.resolve()),
        "commit": history.head(),
        "clean": not dirty,
        "dirty": dirty,
        "shallow": history.shallow(),
    }


def dirty_files(history: History, root: Path) -> list[str]:
    """Uncommitted files, without what runs and reports of this study write."""
    prefix = history.path_of(root)
    prefix = "" if prefix == "." else f"{prefix}/"
    return [f for f in history.dirty() if not _is_output(f.removeprefix(prefix))]


def _is_output(path: str) -> bool:
    parts = path.split("/")
    return path.startswith(OUTPUTS) or (len(parts) > 3 and parts[0] == _NAME and parts[2] == "results")
