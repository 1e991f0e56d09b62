"""Task folders of Harbor whose repo and tests need no container."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from harness.workspace.copy import copy_tree
from harness.workspace.errors import TaskError
from harness.workspace.importing.choice import Choice, Found
from harness.workspace.tasks import load_task


def harbor(source: Path, choice: Choice, temp: Path) -> Iterator[Found]:
    """A Harbor task folder or a folder of them. The repo has to lie in environment/repo and the tests have to be pytest files; what
    needs its container is left out.
    """
    folders = [source] if (source / "task.toml").is_file() else sorted(p.parent for p in source.glob("*/task.toml"))
    for folder in folders:
        yield folder.name, lambda into, f=folder: _harbor_task(f, into)


def _harbor_task(folder: Path, into: Path) -> Path:
    task = load_task(folder)
    for name in task.hidden_tests:
        if "/app" in (task.hidden / name).read_text(encoding="utf-8", errors="replace"):
            raise TaskError(f"tests/{name} names /app; it has to find the repo from its current folder")
    target = into / folder.name
    if target.exists():
        raise TaskError(f"{target}: is there already; take it away or choose another name")
    try:
        copy_tree(folder, target)
        load_task(target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return target
