"""A fresh copy of a task's repo for one run. Links are copied as links and never followed; modes are kept."""

from __future__ import annotations

import contextlib
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.workspace.errors import TaskError
from harness.workspace.paths import MOST_BYTES, Entry, unless_too_long, walk

if TYPE_CHECKING:
    from harness.workspace.tasks import Task


@dataclass(frozen=True)
class Copy:
    """root: the copied repo. scratch: what commands see as /tmp; gone when the workspace is closed."""

    root: Path
    scratch: Path


def fresh_copy(task: Task, into: Path) -> Copy:
    """Copies the task's repo to `into`/project, which must not exist yet."""
    return copy_of(task.repo, into)


def copy_of(folder: Path, into: Path) -> Copy:
    """As fresh_copy, for any folder."""
    root, scratch = into / "project", into / "tmp"
    into.mkdir(parents=True, exist_ok=True)
    if root.exists():
        raise TaskError(f"{root}: is there already; a run needs a fresh folder")
    copy_tree(folder, root)
    scratch.mkdir(exist_ok=True)
    return Copy(root.resolve(), scratch.resolve())


def copy_tree(source: Path, target: Path) -> None:
    """Copies files, folders and links; sockets, pipes and devices are left out. Owners may always write their copy."""
    for entry in walk(source):
        _copy(entry, target / entry.name)


def copy_left(source: Path, target: Path) -> None:
    """Copies what commands have left, which may be anything.

    Left out besides: what can't be read, a path that grows too long, what does not fit into MOST_BYTES (a copy fills holes).
    """
    left = MOST_BYTES
    for entry in walk(source):
        if entry.is_file and entry.stat.st_size > left:
            continue
        left -= entry.stat.st_size if entry.is_file else 0
        with contextlib.suppress(PermissionError), unless_too_long():
            _copy(entry, target / entry.name)


def _copy(entry: Entry, place: Path) -> None:
    if entry.is_folder:
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(stat.S_IMODE(entry.stat.st_mode) | stat.S_IRWXU)
    elif entry.is_link:
        place.symlink_to(Path(entry.path).readlink())
    elif entry.is_file:
        shutil.copyfile(entry.path, place, follow_symlinks=False)
        place.chmod(stat.S_IMODE(entry.stat.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
