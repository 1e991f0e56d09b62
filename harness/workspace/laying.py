"""Fresh trees to grade on: the task's repo with the agent's changes laid in, without what could bend the tests.

Left as the repo had it: every conftest.py, pytest's settings, start-up hooks of Python and the visible test files.
"""

from __future__ import annotations

import configparser
import shutil
import tomllib
from pathlib import Path, PurePosixPath

from harness.workspace.copy import copy_tree
from harness.workspace.paths import unless_too_long, walk
from harness.workspace.tasks import CACHES, HARBOR_FILES, Task
from harness.workspace.tree import differing, make_way, snapshot

OWN_SETTINGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
KEPT_NAMES = frozenset({*OWN_SETTINGS, "conftest.py", "sitecustomize.py", "usercustomize.py"})
SHARED_SETTINGS = ("pyproject.toml", "tox.ini", "setup.cfg")


def fresh_tree(task: Task, root: Path, into: Path) -> Path:
    """The repo with the changes of `root` that count, as a new folder `into`; `root` itself is only read."""
    copy_tree(task.repo, into)
    after = snapshot(root)
    for name in differing(snapshot(task.repo), after):
        if _kept(task, name) or name in after.unread:
            continue
        with unless_too_long():
            make_way(into, name)
            if name in after.files:
                _copy(root / name, into / name)
    return into


def reference_tree(task: Task, into: Path) -> Path:
    """The repo with the reference solution laid over it."""
    copy_tree(task.repo, into)
    if task.reference is not None:
        _lay_over(task.reference, into)
    return into


def add_hidden(task: Task, into: Path) -> None:
    """Lays the hidden tests over a tree; what stands in their way goes."""
    _lay_over(task.hidden, into)


def settings_file(repo: Path) -> str | None:
    """The file at the top of a repo that holds pytest's settings, None when there is none."""
    for name in OWN_SETTINGS:
        if (repo / name).is_file():
            return name
    return next((name for name in SHARED_SETTINGS if _has_pytest_section(repo / name)), None)


def _kept(task: Task, name: str) -> bool:
    last = PurePosixPath(name).name
    if last in KEPT_NAMES or last.endswith(".pth") or name in task.visible_tests:
        return True
    return name in SHARED_SETTINGS and settings_file(task.repo) == name


def _has_pytest_section(path: Path) -> bool:
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        if path.suffix == ".toml":
            return "pytest" in tomllib.loads(text).get("tool", {})
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
    except (tomllib.TOMLDecodeError, configparser.Error):
        return False
    return parser.has_section("tool:pytest" if path.name == "setup.cfg" else "pytest")


def _lay_over(source: Path, into: Path) -> None:
    for entry in walk(source, CACHES):
        if not entry.is_folder and entry.name not in HARBOR_FILES:
            make_way(into, entry.name)
            _copy(Path(entry.path), into / entry.name)


def _copy(source: Path, target: Path) -> None:
    """Copies one file with its mode, or a link as a link; an unreadable file becomes an empty one."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        shutil.copyfile(source, target)
    except OSError:
        target.touch()
    target.chmod(source.stat().st_mode & 0o777 | 0o600)
