"""The whole grading.json of a run: its final tree, the untouched repo it began with, and the trees in between."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import harness
from harness.settings import SandboxSettings, to_plain
from harness.workspace.grading import grade, grade_hidden_only, grade_visible_only
from harness.workspace.states import Bench, graded_states, open_bench
from harness.workspace.tasks import Task
from harness.workspace.tree import snapshot

STARTS = "starts"


def grade_run(
    task: Task, root: Path, events: Sequence[dict[str, Any]], sandbox: SandboxSettings, cache: Path
) -> dict[str, Any]:
    """grade's document, and `start` and `states` (docs/run_folder.md). An untouched repo is not graded a second time.

    root: the final tree, only read. cache: a folder in which the grading of untouched repos is kept.

    Raises:
        TaskError: the hidden tests can't be collected even on the reference.
        SandboxError: no sandbox can be had.
    """
    with open_bench(task, sandbox) as bench:
        start = start_of(bench, cache)
        untouched = snapshot(root).digest == snapshot(task.repo).digest
        graded = grade(task, root, sandbox, start if untouched else None)
        bench.remember(task.repo, start["hidden"])
        bench.remember(root, graded["hidden"])
        return graded | {"start": start, "states": graded_states(bench, events)}


def start_of(bench: Bench, cache: Path) -> dict[str, Any]:
    """`{"hidden": R, "visible": R}` of the untouched repo: from the cache, or graded now and kept there.

    What it is kept under is all that can change it: task, sandbox, Python, pytest, this harness.
    """
    task, sandbox = bench.task, bench.sandbox
    made_of = [task.digest, to_plain(sandbox), platform.python_version(), version("pytest"), harness.__version__]
    name = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:24]
    file = cache / STARTS / f"{task.name}-{name}.json"
    known = _read(file)
    if known is None:
        known = {
            "hidden": grade_hidden_only(task, task.repo, sandbox),
            "visible": grade_visible_only(task, task.repo, sandbox),
        }
        _keep(file, known)
    return known


def _read(file: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(known, dict) and all(isinstance(known.get(k), dict) for k in ("hidden", "visible"))
    return known if whole else None


def _keep(file: Path, known: dict[str, Any]) -> None:
    """Several runs may do this at once, so each writes a file of its own first. A cache that can't be written is none."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
