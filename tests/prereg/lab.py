"""A throw-away study in a real git repository, with real run folders, to try every forgery on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.tables import all_tables
from harness.prereg import Cell, Registered, Report, Study, check, register, registration_facts, study_facts
from harness.record.events import EventWriter, read_events
from harness.record.folder import RunFolder, run_id, write_json
from harness.record.summary import summarise

CELLS = tuple(
    Cell({"agent.name": agent, "server.n_ctx": 4096, "server.kind": "scripted", "task.name": "cart", "seed": seed})
    for agent in ("plain", "clearing")
    for seed in (1, 2)
)
TASKS = {"cart": "d1"}
PREDICTIONS = """\
experiment: shot
predictions:
- id: s-1
  wording: With clearing both runs are solved.
  cells: {agent: clearing}
  claim: all(runs, solved)
  probability: 0.8
- id: s-2
  wording: Without it at most one is.
  cells: {agent: plain}
  claim: count(runs, solved) <= 1
"""


@dataclass
class Lab:
    """folder: the study; runs: where its run folders go (outside the repository, as they may be)."""

    folder: Path
    runs: Path
    name: str = "shot"
    clock: str | None = None
    made: list[Path] = field(default_factory=list)

    @property
    def study(self) -> Study:
        return Study(self.folder, self.name)

    def git(self, *arguments: str) -> str:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@x",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@x",
        }
        dates = {} if self.clock is None else {"GIT_AUTHOR_DATE": self.clock, "GIT_COMMITTER_DATE": self.clock}
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **who, **dates}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments], capture_output=True, text=True, env=environment, check=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def commit(self, message: str = "work") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def register(self, *, cells: Sequence[Cell] = CELLS, amend: str | None = None, commit: bool = True) -> Registered:
        done = register(self.study, cells, TASKS, amend=amend, tries=300)
        if commit:
            self.commit("register")
        return done

    def run(self, cell: Cell, *, solved: bool, changes: Mapping[str, Any] | None = None) -> Path:
        """One run folder, as the run writer makes it; `changes` replace entries of the manifest."""
        values = dict(cell.settings)
        settings = {
            "agent": {"name": values["agent.name"]},
            "server": {"n_ctx": values["server.n_ctx"], "kind": values["server.kind"]},
            "task": {"name": values["task.name"]},
            "seed": values["seed"],
        }
        identity = {"settings": settings, "task": "d1", "model": None}
        manifest = {
            "format": 1,
            "run_id": run_id(identity),
            "experiment": self.name,
            "cell": [f"{k}={v}" for k, v in values.items()],
            "identity": identity,
            "settings": settings,
            "study": study_facts(self.folder),
            "registration": registration_facts(self.folder, self.name),
            "task": {"name": values["task.name"], "digest": "d1"},
            "kind": "scripted",
            **(changes or {}),
        }
        folder = RunFolder(self.runs / self.name / manifest["run_id"])
        folder.begin()
        write_json(folder.path / "manifest.json", manifest)
        with EventWriter(folder.events) as events:
            events.emit("start", n_ctx=values["server.n_ctx"], seed=values["seed"], agent=values["agent.name"])
            events.emit("stop", steps=1, reason="declared_done", declared_done=True, detail=None, text="done")
        state = "passed" if solved else "failed"
        tests = {"exit_code": int(not solved), "passed": int(solved), "total": 1, "tests": {"t": state}}
        grading = {
            "hidden": tests, "visible": tests, "visible_left": tests, "solved": solved, "tampered": [], "tests_added": [],
            "tests_removed": [], "files_changed": 1, "changed": ["cart.py"],
        }  # fmt: skip
        write_json(folder.path / "grading.json", grading)
        write_json(folder.path / "result.json", summarise(manifest, list(read_events(folder.events)), grading))
        self.made.append(folder.path)
        return folder.path

    def run_all(self, cells: Sequence[Cell] = CELLS) -> None:
        for cell in cells:
            self.run(cell, solved=cell.settings["agent.name"] == "clearing")

    def check(self, folder: Path | None = None) -> Report:
        """`folder`: another copy of the study to check from."""
        study = Study(folder or self.folder, self.name)
        return check(study, runs=self.runs / self.name, tables=all_tables, summarise=summarise, grid=CELLS, tries=300)


def make_lab(root: Path) -> Lab:
    """A study with predictions, plan and grid, committed, nothing registered."""
    lab = Lab(root / "study", root / "runs")
    lab.folder.mkdir()
    lab.git("init", "-q", "-b", "main")
    lab.write("experiments/shot/predictions.yaml", PREDICTIONS)
    lab.write("experiments/shot/plan.md", "Does clearing help?\n")
    lab.write("conf/experiment/shot.yaml", "seeds: [1, 2]\n")
    lab.commit("predictions")
    return lab


def words(report: Report) -> dict[str, str]:
    """id (with the version, when there are several) -> provenance."""
    several = {line.version for line in report.lines} != {1} and len(report.lines) > len(
        {_id(line) for line in report.lines}
    )
    return {f"{_id(line)}/{line.version}" if several else _id(line): str(line.standing.word) for line in report.lines}


def verdicts(report: Report) -> dict[str, str]:
    return {f"{_id(line)}/{line.version}": str(line.judged.verdict) for line in report.lines}


def whys(report: Report) -> str:
    """All reasons, notes and problems of a report as one text."""
    return "\n".join(
        [*(f"{line.standing.why} {' '.join(line.standing.notes)}" for line in report.lines), *report.problems]
    )


def _id(line: Any) -> str:
    return str(line.judged.prediction.id)
