"""The trees a run went through, rebuilt from its `tree` events, and how many hidden tests pass on each of them.

A file over 1 MiB is not in the events and a name that is no UTF-8 is not there as it was: a rebuilt tree counts only where its
digest is the recorded one. What is not known (such a tree, one beyond the bounds) has nulls, never a guess.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.settings import SandboxSettings
from harness.workspace.copy import Copy, copy_left, copy_tree
from harness.workspace.grading import as_result, hidden_test_names, run_grader
from harness.workspace.laying import add_hidden, fresh_tree, settings_file
from harness.workspace.paths import remove, temporary
from harness.workspace.sandbox import LocalWorkspace, open_workspace
from harness.workspace.tasks import Task
from harness.workspace.tree import lay, snapshot

MOST_STATES = 40
BUDGET_S = 120.0  # of grading states of one run; an unlucky run's loops must not hold up a sweep
SLOWEST_S = 30.0


class Rebuild:
    """The copy of one run as its events tell it, in a new folder `root`."""

    def __init__(self, task: Task, root: Path) -> None:
        self.root = root
        copy_tree(task.repo, root)
        self.known = True

    def apply(self, event: dict[str, Any]) -> bool:
        """Makes the changes of a `tree` event; True when the tree is the recorded one."""
        for change in event["changes"]:
            # What can't be laid shows in the digest, and a later event may take it away again.
            with contextlib.suppress(ValueError, OSError):
                lay([change], self.root)
        self.known = snapshot(self.root).digest == event["digest"]
        return self.known


class Bench:
    """One sandbox in which trees of a task are tried one after another; nothing of one is left for the next.

    Results are remembered by what they depend on: trees that differ in the agent's own tests only are graded once.
    """

    def __init__(self, task: Task, sandbox: SandboxSettings, workspace: LocalWorkspace) -> None:
        self.task = task
        self.sandbox = sandbox
        self.workspace = workspace
        self._results: dict[str, dict[str, Any]] = {}

    def put(self, root: Path) -> LocalWorkspace:
        """The workspace, now over a copy of `root`."""
        self._empty()
        copy_left(root, self.workspace.root)
        return self.workspace

    def hidden(self, root: Path, timeout_s: float | None = None) -> dict[str, Any]:
        """The hidden tests on a tree, as grade_hidden_only gives them. timeout_s: the task's own by default."""
        with self._fresh(root) as (tree, digest):
            if digest not in self._results:
                add_hidden(self.task, tree)
                self._empty()
                for child in tree.iterdir():
                    child.rename(self.workspace.root / child.name)
                files = self.task.only_tests or self.task.hidden_tests
                ran = run_grader(self.workspace, files, settings_file(self.task.repo), timeout_s or self.task.timeout_s)
                self._results[digest] = as_result(*ran, hidden_test_names(self.task, self.sandbox))
            return self._results[digest]

    def remember(self, root: Path, result: dict[str, Any]) -> None:
        """A result for a tree that was graded elsewhere."""
        with self._fresh(root) as (_, digest):
            self._results[digest] = result

    @contextlib.contextmanager
    def _fresh(self, root: Path) -> Iterator[tuple[Path, str]]:
        # Beside the workspace, so that a tree can be moved into it.
        with temporary(self.workspace.root.parent) as folder:
            tree = fresh_tree(self.task, root, folder / "tree")
            yield tree, snapshot(tree).digest

    def _empty(self) -> None:
        for folder in (self.workspace.root, self.workspace.scratch):
            for child in folder.iterdir():
                if child.is_dir() and not child.is_symlink():
                    remove(child)
                else:
                    child.unlink()


@contextlib.contextmanager
def open_bench(task: Task, sandbox: SandboxSettings) -> Iterator[Bench]:
    """A bench in a folder of its own; the sandbox starts with the first tree that has to be tried. Raises SandboxError."""
    with temporary() as folder:
        root, scratch = folder / "tree", folder / "tmp"
        root.mkdir()
        scratch.mkdir()
        with open_workspace(Copy(root.resolve(), scratch.resolve()), sandbox, task.packages) as workspace:
            yield Bench(task, sandbox, workspace)


def graded_states(
    bench: Bench,
    events: Iterable[dict[str, Any]],
    *,
    most: int = MOST_STATES,
    budget_s: float = BUDGET_S,
    slowest_s: float = SLOWEST_S,
) -> list[dict[str, Any]]:
    """The distinct trees of a run in order of their first appearance: {step, call, digest, hidden_passed, hidden_total, solved}.

    At most `most` are graded, the last one and others evenly spaced, for `budget_s` seconds together and `slowest_s` each (the
    task's own limit, if that is shorter); the others, and those that can't be rebuilt, have null in the last three.
    """
    first: dict[str, dict[str, Any]] = {}
    trees = [e for e in events if e["event"] == "tree"]
    for event in trees:
        first.setdefault(event["digest"], event)
    chosen = {list(first)[i] for i in evenly(len(first), most)}
    end = time.monotonic() + budget_s
    states = []
    with temporary() as folder:
        rebuilt = Rebuild(bench.task, folder / "tree")
        for event in trees:
            known = rebuilt.apply(event)
            if event is not first[event["digest"]]:
                continue
            result = None
            if known and event["digest"] in chosen and time.monotonic() < end:
                result = bench.hidden(rebuilt.root, min(bench.task.timeout_s, slowest_s))
                if result["timed_out"] and result["ms"] < 1000 * bench.task.timeout_s:
                    result = None  # with the task's own limit it might have ended
            states.append(
                {"step": event["step"], "call": event.get("call"), "digest": event["digest"], **_facts(result)}
            )
    return states


def evenly(count: int, most: int) -> Sequence[int]:
    """At most `most` of the numbers 0 … count-1, evenly spaced, the last always among them."""
    if count <= most:
        return range(count)
    return sorted({count - 1 - i * count // most for i in range(most)})


def _facts(result: dict[str, Any] | None) -> dict[str, Any]:
    if result is None:
        return {"hidden_passed": None, "hidden_total": None, "solved": None}
    return {"hidden_passed": result["passed"], "hidden_total": result["total"], "solved": is_solved(result)}


def is_solved(hidden: dict[str, Any]) -> bool:
    """Whether a result of the hidden tests means that the task is solved."""
    return bool(hidden["exit_code"] == 0 and hidden["passed"] == hidden["total"] > 0)
