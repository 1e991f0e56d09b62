"""Proves a task: the reference solution passes every hidden test, the untouched repo does not, and that again and again."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.settings import SandboxSettings
from harness.workspace.errors import TaskError
from harness.workspace.grading import grade_hidden_only, grade_visible_only
from harness.workspace.laying import reference_tree
from harness.workspace.tasks import Task


@dataclass(frozen=True)
class Proof:
    """What the runs showed. problems is empty when the task holds; counts are of the first run, None where there was none."""

    task: str
    problems: tuple[str, ...]
    hidden_total: int | None = None
    reference_passed: int | None = None
    untouched_passed: int | None = None
    visible_total: int | None = None
    untouched_visible: int | None = None

    @property
    def holds(self) -> bool:
        return not self.problems


def prove(task: Task, sandbox: SandboxSettings, times: int = 3) -> Proof:
    """Grades the reference and the untouched repo `times` times each.

    Raises:
        SandboxError: no sandbox can be had.
    """
    if task.reference is None:
        return Proof(task.name, (f"no reference solution in {task.path / 'solution' / 'files'}",))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        solved = reference_tree(task, Path(folder, "reference"))
        try:
            references = [grade_hidden_only(task, solved, sandbox) for _ in range(times)]
            repos = [grade_hidden_only(task, task.repo, sandbox) for _ in range(times)]
            seen, seen_before = (grade_visible_only(task, tree, sandbox) for tree in (solved, task.repo))
        except TaskError as e:
            return Proof(task.name, (str(e),))
    problems = _of_reference(references)
    if seen["passed"] < seen["total"]:
        problems.append(f"the reference fails visible tests: {_failing(seen)}")
    if not _bad(repos[0]):
        problems.append("the untouched repo passes every hidden test: there is nothing to do")
    if any(r["tests"] != repos[0]["tests"] for r in repos):
        problems.append(f"hidden tests end differently from run to run on the untouched repo: {_unsteady(repos)}")
    return Proof(
        task.name,
        tuple(problems),
        hidden_total=references[0]["total"],
        reference_passed=references[0]["passed"],
        untouched_passed=repos[0]["passed"],
        visible_total=seen_before["total"],
        untouched_visible=seen_before["passed"],
    )


def _of_reference(runs: list[dict[str, Any]]) -> list[str]:
    bad = [r for r in runs if _bad(r)]
    if not bad:
        return []
    how = (
        "did not end in time"
        if bad[0]["timed_out"]
        else f"fails {_failing(bad[0]) or 'with exit ' + str(bad[0]['exit_code'])}"
    )
    return [f"the reference {how} in {len(bad)} of {len(runs)} runs"]


def _bad(result: dict[str, Any]) -> bool:
    return result["exit_code"] != 0 or result["passed"] < result["total"]


def _failing(result: dict[str, Any]) -> str:
    return _some([name for name, outcome in result["tests"].items() if outcome != "passed"])


def _unsteady(runs: list[dict[str, Any]]) -> str:
    return _some([name for name in runs[0]["tests"] if len({r["tests"].get(name) for r in runs}) > 1])


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
