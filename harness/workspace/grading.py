"""Grades a run: hidden tests, the original visible tests and the tests as the agent left them, each in a sandbox of its own.

The agent has stopped by then; hidden tests never were on its side of the sandbox. What counts is the report of the harness's own
pytest plugin, by the names of tests known beforehand (collected on the reference, else on the untouched repo): a test that was not
reported is `missing`, which is not passed. Code under test shares a process with pytest, so code that knows this room can still
forge a report; code that exits early, prints, patches pytest, or leaves a conftest, settings or edited tests behind gains nothing.
"""

from __future__ import annotations

import functools
import json
import secrets
from pathlib import Path
from typing import Any

from harness.agent.workspace import CommandResult
from harness.settings import SandboxSettings
from harness.workspace.copy import Copy, copy_left, copy_tree
from harness.workspace.errors import TaskError
from harness.workspace.functions import is_test_file, test_functions
from harness.workspace.laying import add_hidden, fresh_tree, reference_tree, settings_file
from harness.workspace.paths import temporary
from harness.workspace.sandbox import LocalWorkspace, open_workspace
from harness.workspace.tasks import Task
from harness.workspace.tree import LARGE, as_text, content, differing, entries, printable, snapshot

GRADER = Path(__file__).with_name("grader.py")
GRADER_INSIDE = "/opt/grader.py"
OUTPUT_CHARS = 4000
COLLECT_S = 60.0
Report = dict[str, Any]  # what the grader told: collected, phases, unreadable, trap, exit
NO_TESTS = {"exit_code": None, "passed": 0, "total": 0, "tests": {}, "timed_out": False, "ms": 0.0, "output": ""}


def grade(
    task: Task, workspace_root: Path, sandbox: SandboxSettings, known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The grading.json document (docs/run_folder.md) of a final tree, which is only read.

    known: `hidden` and `visible`, where the same tree was graded before.

    Raises:
        TaskError: the hidden tests can't be collected even on the reference.
        SandboxError: no sandbox can be had.
    """
    hidden = known["hidden"] if known else grade_hidden_only(task, workspace_root, sandbox)
    visible = known["visible"] if known else grade_visible_only(task, workspace_root, sandbox)
    with temporary() as folder:
        left = folder / "left"
        copy_left(workspace_root, left)
        visible_left = _graded(task, left, (), sandbox, None)
    changed = differing(snapshot(task.repo), snapshot(workspace_root))
    return {
        "hidden": hidden,
        "visible": visible,
        "visible_left": visible_left,
        "solved": hidden["exit_code"] == 0 and hidden["passed"] == hidden["total"] > 0,
        **test_changes(task, workspace_root),
        "files_changed": len(changed),
        "changed": [printable(name) for name in changed],
    }


def grade_hidden_only(task: Task, workspace_root: Path, sandbox: SandboxSettings) -> dict[str, Any]:
    """The `hidden` part alone: one run of pytest. For the trees in the middle of a run."""
    names = hidden_test_names(task, sandbox)
    with temporary() as folder:
        tree = fresh_tree(task, workspace_root, folder / "hidden")
        add_hidden(task, tree)
        return _graded(task, tree, task.only_tests or task.hidden_tests, sandbox, names)


def grade_visible_only(task: Task, workspace_root: Path, sandbox: SandboxSettings) -> dict[str, Any]:
    """The `visible` part alone: the visible tests as they were at the start, on the code as it is now."""
    if not task.visible_tests:
        return dict(NO_TESTS)
    names = visible_test_names(task, sandbox)
    with temporary() as folder:
        tree = fresh_tree(task, workspace_root, folder / "visible")
        return _graded(task, tree, task.visible_tests, sandbox, names)


def hidden_test_names(task: Task, sandbox: SandboxSettings) -> tuple[str, ...]:
    """The hidden tests, parameters included, as pytest collects them on the reference solution (without one: on the repo)."""
    return task.only_tests or _collected(task, sandbox, True)


def visible_test_names(task: Task, sandbox: SandboxSettings) -> tuple[str, ...]:
    return _collected(task, sandbox, False)


def test_changes(task: Task, root: Path) -> dict[str, list[str]]:
    """What became of the visible tests, by name: `tampered` (changed or gone), `tests_added`, `tests_removed` (gone)."""
    before = _functions_of(task.repo, task.visible_tests)
    small = {e.name for e in entries(root) if e.is_file and e.stat.st_size <= LARGE}
    files = {name for name in small if is_test_file(name) or name in task.visible_tests}
    after = _functions_of(root, tuple(sorted(files)))
    return {
        "tampered": [name for name, source in before.items() if after.get(name) != source],
        "tests_added": [name for name in after if name not in before],
        "tests_removed": [name for name in before if name not in after],
    }


def _functions_of(root: Path, files: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in files:
        path = root / name
        text = as_text(content(path)) if path.is_file() and not path.is_symlink() else None
        found |= {f"{printable(name)}::{function}": source for function, source in test_functions(text or "").items()}
    return found


@functools.lru_cache(maxsize=256)
def _collected(task: Task, sandbox: SandboxSettings, hidden: bool) -> tuple[str, ...]:
    files = task.hidden_tests if hidden else task.visible_tests
    with temporary() as folder:
        tree = reference_tree(task, folder / "tree") if hidden else folder / "tree"
        if hidden:
            add_hidden(task, tree)
        else:
            copy_tree(task.repo, tree)
        result, told = _pytest(task, tree, files, sandbox, settings_file(task.repo), collect=True)
    if told["unreadable"] or not told["collected"]:
        what = told["unreadable"] or files
        said = (result.stdout + result.stderr).strip().splitlines()
        hint = next((line for line in said if line.startswith("E ")), said[-1] if said else "nothing was printed")
        raise TaskError(f"task {task.name}: the tests in {', '.join(what)} can't be collected ({hint.strip('E ')})")
    return tuple(told["collected"])


def _graded(
    task: Task, tree: Path, files: tuple[str, ...], sandbox: SandboxSettings, expected: tuple[str, ...] | None
) -> dict[str, Any]:
    """One run of pytest as a result; expected None takes the tests that are found, with the tree's own settings."""
    config = False if expected is None else settings_file(task.repo)
    return as_result(*_pytest(task, tree, files, sandbox, config), expected)


def as_result(result: CommandResult, told: Report, expected: tuple[str, ...] | None) -> dict[str, Any]:
    """What a run of the grader came to, by test; expected: the tests that count, None for those that were found."""
    names = told["collected"] if expected is None else expected
    tests = {name: _outcome(told["phases"].get(name)) for name in names}
    output = (result.stdout + result.stderr)[-OUTPUT_CHARS:]
    code = told["exit"] if told["exit"] == result.exit_code else (result.exit_code or None)
    if told["trap"] is False or (told["exit"] == 0 and told["trap"] is None):
        tests = {name: "error" for name in names}
        output += "\n[a test that has to fail did not: the code under test changes the test runner]"
        code = None
    return {
        "exit_code": code,
        "passed": sum(outcome == "passed" for outcome in tests.values()),
        "total": len(tests),
        "tests": tests,
        "timed_out": result.timed_out,
        "ms": round(result.ms, 1),
        "output": output,
    }


def _outcome(phases: dict[str, str] | None) -> str:
    """One word for a test's phases; a test that was not reported to its end is missing."""
    if not phases:
        return "missing"
    if phases.get("call") == "failed":
        return "failed"
    if "failed" in phases.values():
        return "error"
    if "skipped" in phases.values():
        return "skipped"
    return "passed" if set(phases) == {"setup", "call", "teardown"} else "missing"


def _pytest(
    task: Task,
    tree: Path,
    files: tuple[str, ...],
    sandbox: SandboxSettings,
    config: str | bool | None,
    collect: bool = False,
) -> tuple[CommandResult, Report]:
    """Runs the grader on a tree in a sandbox of its own."""
    scratch = tree.with_name(tree.name + "-tmp")
    scratch.mkdir()
    with open_workspace(Copy(tree, scratch), sandbox, task.packages) as workspace:
        return run_grader(workspace, files, config, task.timeout_s, collect)


def run_grader(
    workspace: LocalWorkspace,
    files: tuple[str, ...],
    config: str | bool | None,
    timeout_s: float,
    collect: bool = False,
) -> tuple[CommandResult, Report]:
    """Runs pytest on the tree of a workspace; returns what came of it and what the plugin told."""
    key = secrets.token_hex(16)
    if workspace.sandboxed:
        workspace.extra = ((GRADER, GRADER_INSIDE),)
    argv = ["python", "-s", "-P", GRADER_INSIDE if workspace.sandboxed else str(GRADER)]
    order = {"root": workspace.mount, "files": files, "config": config, "collect": collect, "key": key}
    result, report = workspace.execute(argv, timeout_s=timeout_s, stdin=json.dumps(order), report=True)
    return result, _read_report(report or "", key)


def _read_report(report: str, key: str) -> Report:
    told: Report = {"collected": [], "phases": {}, "unreadable": [], "trap": None, "exit": None}
    for line in report.splitlines():
        try:
            words = json.loads(line)
        except ValueError:
            continue
        match words:
            case [k, "collected", names] if k == key:
                told["collected"] = names
            case [k, "phase", name, when, outcome] if k == key:
                phases = told["phases"].setdefault(name, {})
                phases[when] = outcome if phases.get(when, "passed") == "passed" else phases[when]
            case [k, "unreadable", name] if k == key:
                told["unreadable"].append(name)
            case [k, "trap" | "exit" as what, value] if k == key:
                told[what] = value
    return told
