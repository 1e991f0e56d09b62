"""Paths of the copy: where a name given by the model leads, and a walk that never follows a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.agent.workspace import OutsideWorkspace

MAX_LINKS = 40


@dataclass(frozen=True)
class Entry:
    """One entry below a folder. name: its path from there, with slashes; stat: its own, not that of a link's target."""

    path: str
    name: str
    stat: os.stat_result

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.stat.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.stat.st_mode)


def walk(top: Path, skip: frozenset[str] = frozenset()) -> Iterator[Entry]:
    """`top` itself (name ""), then everything below it; folders named in `skip` are left out, links are not followed."""
    yield Entry(str(top), "", os.lstat(top))
    todo = [(str(top), "")]
    while todo:
        folder, prefix = todo.pop()
        try:
            entries = list(os.scandir(folder))
        except (PermissionError, FileNotFoundError):
            continue
        for found in entries:
            try:
                entry = Entry(found.path, prefix + found.name, found.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            if entry.is_folder:
                if found.name in skip:
                    continue
                todo.append((found.path, entry.name + "/"))
            yield entry


def resolve(root: Path, mount: str, path: str) -> Path:
    """The file on this machine that `path` names inside the sandbox: relative to the copy, or absolute below `mount`.

    Links are followed as a command inside would follow them. The last part need not exist.

    Raises:
        OutsideWorkspace: it leads out of the copy, or to something that is neither a file nor a folder.
    """
    outside = OutsideWorkspace(f"{path} is outside the repo")
    if "\0" in path:
        raise outside
    base = PurePosixPath(mount)
    todo = list(reversed((base / path).parts[1:]))
    inside = PurePosixPath("/")
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            inside = inside.parent
            continue
        inside = inside / part
        if not inside.is_relative_to(base):
            continue
        try:
            target = str((root / inside.relative_to(base)).readlink())
        except (OSError, ValueError):
            continue
        links += 1
        if links > MAX_LINKS:
            raise outside
        inside = inside.parent
        pieces = PurePosixPath(target).parts
        if target.startswith("/"):
            inside, pieces = PurePosixPath("/"), pieces[1:]
        todo += reversed(pieces)
    if not inside.is_relative_to(base):
        raise outside
    found = root / inside.relative_to(base)
    try:
        mode = os.lstat(found).st_mode
    except (OSError, ValueError):
        return found
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OutsideWorkspace(f"{path} is neither a file nor a folder")
    return found
