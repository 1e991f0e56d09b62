"""Finish gates scored on recorded runs: when would each have stopped the run, and was it right.

A moment is one "done" of the model that came to the gate, with the tree as it was then, rebuilt from the run's `tree` events
onto the task's repo. The gates are the agent's own (harness.agent.finish), asked again: where the run holds the outcome of pytest
at that moment it is taken, else pytest runs on the rebuilt tree, always in the sandbox. Each moment is judged by itself: a gate is
right when it believes a solved tree or hands an unsolved one back.

A gate stops a run at the first moment that it believes. What a run would have done after a moment that its own gate believed
and this one would not have, nobody knows: it counts as `beyond`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.agent.finish import PYTEST, Evidence, finish_gate, test_names
from harness.agent.workspace import CommandResult
from harness.record.events import EventError, read_events
from harness.record.folder import RecordError, RunFolder, find_runs
from harness.settings import FinishSettings, SandboxSettings
from harness.workspace.errors import SandboxError, TaskError
from harness.workspace.sandbox import LocalWorkspace
from harness.workspace.states import Bench, Rebuild, is_solved, open_bench
from harness.workspace.tasks import Task, load_task
from harness.workspace.tree import snapshot

GATES = ("none", "tests_pass", "evidence")


class GateError(ValueError):
    """A wrong request, in one line."""


@dataclass(frozen=True)
class Moment:
    """One "done". step: None where the agent has none. solved: the hidden tests on the tree at that moment. believed: per gate.

    solved and believed are None where they are not known.
    """

    step: int | None
    last: bool  # the run ended here, its own gate having believed it
    solved: bool | None
    believed: dict[str, bool | None]
    pytest: str  # recorded, run, not needed, not known


@dataclass(frozen=True)
class ScoredRun:
    """One run's moments; empty for a run in which the model never said that it was done."""

    run_id: str
    kind: str
    gate: str
    moments: tuple[Moment, ...]

    def stop(self, gate: str) -> Moment | None:
        """Where this gate would have stopped the run; None where it would not have, as far as the record goes."""
        return next((m for m in self.moments if m.believed[gate]), None)


@dataclass
class GateScores:
    """runs: all that could be read. problems: one line for each that could not be."""

    gates: tuple[str, ...]
    runs: list[ScoredRun] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """One row per kind of run and gate; kinds are never mixed.

        runs. said_done: runs with a moment. moments. believed_solved, believed_unsolved, returned_solved, returned_unsolved:
        moments by what the gate says and what is so; right: the share of the first and the last of these, None without any;
        unknown: moments where one of the two is not known. stopped: runs it would have stopped; stopped_solved, earlier: of
        these, the solved ones, and those before the record's end. beyond: runs whose recorded end it would not have believed.
        """
        return [self._row(kind, gate) for kind in sorted({r.kind for r in self.runs}) for gate in self.gates]

    def _row(self, kind: str, gate: str) -> dict[str, Any]:
        runs = [r for r in self.runs if r.kind == kind]
        moments = [m for r in runs for m in r.moments]
        counts = {
            f"{word}_{truth}": sum(m.believed[gate] is believed and m.solved is solved for m in moments)
            for word, believed in (("believed", True), ("returned", False))
            for truth, solved in (("solved", True), ("unsolved", False))
        }
        known = sum(counts.values())
        stops = [(r, m) for r in runs if (m := r.stop(gate)) is not None]
        return {
            "kind": kind,
            "gate": gate,
            "runs": len(runs),
            "said_done": sum(bool(r.moments) for r in runs),
            "moments": len(moments),
            **counts,
            "right": (counts["believed_solved"] + counts["returned_unsolved"]) / known if known else None,
            "unknown": len(moments) - known,
            "stopped": len(stops),
            "stopped_solved": sum(m.solved is True for _, m in stops),
            "earlier": sum(not m.last for _, m in stops),
            "beyond": sum(any(m.last and m.believed[gate] is False for m in r.moments) for r in runs),
        }

    def document(self) -> dict[str, Any]:
        """Everything as JSON values."""
        runs = [
            {
                "run_id": r.run_id,
                "kind": r.kind,
                "gate": r.gate,
                "stops": {
                    g: None if (m := r.stop(g)) is None else {"step": m.step, "solved": m.solved} for g in self.gates
                },
                "moments": [asdict(m) for m in r.moments],
            }
            for r in self.runs
        ]
        return {"gates": self.rows(), "runs": runs, "problems": self.problems}


def score_gates(
    roots: Sequence[Path],
    gates: Sequence[str] = GATES,
    *,
    sandbox: SandboxSettings | None = None,
    study: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> GateScores:
    """Scores the gates on every finished run at or below `roots`. sandbox: for what has to be run; by default as the harness's.

    Raises:
        GateError: no such gate, no finished run. RecordError: no such folder. SandboxError: something has to be run and can't be.
    """
    for gate in gates:
        if gate not in GATES:
            raise GateError(f"gate {gate}: no such gate; known are {', '.join(GATES)}")
    folders = {f.path.resolve(): f for root in roots for f in find_runs(root) if f.finished}
    if not folders:
        raise GateError(f"{', '.join(map(str, roots))}: no finished run here")
    scores = GateScores(tuple(dict.fromkeys(gates)))
    box = sandbox or SandboxSettings()
    for number, folder in enumerate(folders.values(), start=1):
        progress(f"{number} of {len(folders)}: {folder.path.name}")
        try:
            scores.runs.append(_score(folder, scores.gates, box, study))
        except SandboxError:
            raise
        except (RecordError, EventError, TaskError, GateError) as e:
            scores.problems.append(f"{folder.path.name}: {e}")
        except (KeyError, TypeError, AttributeError) as e:
            scores.problems.append(f"{folder.path.name}: not in the format of a run folder ({type(e).__name__}: {e})")
    return scores


def _score(folder: RunFolder, gates: tuple[str, ...], sandbox: SandboxSettings, study: Path | None) -> ScoredRun:
    manifest, events = folder.manifest(), list(read_events(folder.events))
    task = task_of(manifest, study)
    with open_bench(task, sandbox) as bench, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        scorer = _Scorer(
            task, bench, gates, FinishSettings(**manifest["settings"]["finish"]), _solved_trees(folder, task)
        )
        moments = tuple(scorer.moments(events, Path(temporary, "tree")))
    return ScoredRun(manifest["run_id"], manifest["kind"], manifest["settings"]["finish"]["gate"], moments)


def task_of(manifest: dict[str, Any], study: Path | None = None) -> Task:
    """The very task that a run had, found by its path, else by its name.

    Raises:
        TaskError: it is not here, or it is another one by now.
    """
    told = manifest["task"]
    path = Path(told["path"])
    task = load_task(path if (path / "task.toml").is_file() else told["name"], study=study)
    if task.digest != told["digest"]:
        raise TaskError(f"task {told['name']}: {task.path} is not what this run had (its digest is another)")
    return task


def _solved_trees(folder: RunFolder, task: Task) -> dict[str, bool]:
    """What grading.json knows already: by the digest of a tree, whether it is solved."""
    graded = folder.grading()
    known = {s["digest"]: s["solved"] for s in graded.get("states") or () if s["solved"] is not None}
    if "start" in graded:
        known[snapshot(task.repo).digest] = is_solved(graded["start"]["hidden"])
    return known


class _Scorer:
    """One run's moments in order."""

    def __init__(
        self, task: Task, bench: Bench, gates: tuple[str, ...], finish: FinishSettings, solved: dict[str, bool]
    ) -> None:
        self.task, self.bench, self.finish, self.solved = task, bench, finish, solved
        self.gates = gates

    def moments(self, events: Sequence[dict[str, Any]], root: Path) -> Iterator[Moment]:
        rebuilt, evidence = Rebuild(self.task, root), Evidence()
        at_start = test_names(self.bench.put(self.task.repo))
        checks = [e for e in events if e["event"] == "finish_check"]
        for event in events:
            match event["event"]:
                case "tree":
                    rebuilt.apply(event)
                    evidence.saw_change()
                case "command" if event.get("purpose") == "tool":
                    evidence.saw_command(event["command"], event.get("exit_code"))
                case "finish_check":
                    last = event is checks[-1] and bool(event["passed"])
                    yield self._moment(event["step"], last, rebuilt, evidence, at_start, event)
                case "stop" if event["declared_done"] and not checks:
                    # An agent whose end no gate of ours was asked about.
                    yield self._moment(event.get("step"), True, rebuilt, evidence, at_start, {})

    def _moment(
        self,
        step: int | None,
        last: bool,
        rebuilt: Rebuild,
        evidence: Evidence,
        at_start: frozenset[str],
        check: dict[str, Any],
    ) -> Moment:
        if not rebuilt.known:
            believed: dict[str, bool | None] = {g: True if g == "none" else None for g in self.gates}
            return Moment(step, last, None, believed, "not known")
        asked = _AtMoment(self.bench.put(rebuilt.root), check)
        believed = {}
        for name in self.gates:
            settings = FinishSettings(name, self.finish.timeout_s, self.finish.output_chars)
            gate = finish_gate(settings, at_start, self.task.asks_for_tests)
            believed[name] = gate.check(asked, evidence).passed
        return Moment(step, last, self._solved(rebuilt), believed, asked.source)

    def _solved(self, rebuilt: Rebuild) -> bool:
        digest = snapshot(rebuilt.root).digest
        if digest not in self.solved:
            self.solved[digest] = is_solved(self.bench.hidden(rebuilt.root))
        return self.solved[digest]


class _AtMoment:
    """The workspace as it was when the model said that it was done. pytest is run at most once, and not if its outcome is known."""

    def __init__(self, workspace: LocalWorkspace, check: dict[str, Any]) -> None:
        self.root, self.mount = workspace.root, workspace.mount
        self.source = "not needed"
        self._workspace = workspace
        self._check = check
        self._result: CommandResult | None = None

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Gates run PYTEST and nothing else."""
        assert command == PYTEST
        if self._result is None:
            self._result = self._recorded()
            self.source = "recorded"
        if self._result is None:
            self._result = self._workspace.run(command, timeout_s=timeout_s)
            self.source = "run"
        return self._result

    def _recorded(self) -> CommandResult | None:
        """ms tells that the recorded gate ran pytest at all; an exit code of null is one that did not end in time."""
        if self._check.get("ms") is None:
            return None
        code = self._check["exit_code"]
        return CommandResult(self._check["output"], "", code, code is None, self._check["ms"])

    def resolve(self, path: str) -> Path:
        return self._workspace.resolve(path)

    def tree_change(self) -> None:
        """Nothing changes at a moment."""
