"""Paths of the copy: where a name given by the model leads, and a walk that never follows a link."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.agent.workspace import OutsideWorkspace

MAX_LINKS = 40
MOST_BYTES = (
    2 * 2**30
)  # of what commands left, that are read or copied at once; a file of holes has any size for nothing


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


def walk(
    top: Path, skip: frozenset[str] = frozenset(), unseen: Callable[[OSError], None] | None = None
) -> Iterator[Entry]:
    """`top` itself (name ""), then everything below it; folders named in `skip` are left out, links are not followed.

    What can't be looked at (gone meanwhile, not permitted, a path longer than the system takes) is left out; `unseen` is told why.
    """
    yield Entry(str(top), "", os.lstat(top))
    todo = [(str(top), "")]
    while todo:
        folder, prefix = todo.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as e:
            if unseen is not None:
                unseen(e)
            continue
        for found in entries:
            try:
                entry = Entry(found.path, prefix + found.name, found.stat(follow_symlinks=False))
            except OSError as e:
                if unseen is not None:
                    unseen(e)
                continue
            if entry.is_folder:
                if found.name in skip:
                    continue
                todo.append((found.path, entry.name + "/"))
            yield entry


@contextlib.contextmanager
def unless_too_long() -> Iterator[None]:
    """Passes over a path that is longer than the system takes."""
    try:
        yield
    except OSError as e:
        if e.errno != errno.ENAMETOOLONG:
            raise


@contextlib.contextmanager
def temporary(beside: Path | None = None) -> Iterator[Path]:
    """A folder for trees that commands may fill, in the system's place or beside something; see remove()."""
    folder = Path(tempfile.mkdtemp(dir=beside))
    try:
        yield folder
    finally:
        remove(folder)


def remove(top: Path) -> None:
    """Deletes a folder that a command may have filled: folders that forbid it, and trees too deep for a path or for recursion.

    Folders in folders are moved up before their parents go, so that no path grows long. Nothing else may write there meanwhile.
    What can't be deleted stays; never raises.
    """
    with contextlib.suppress(OSError):
        for number in itertools.count():
            top.chmod(0o700)
            folders = [e for e in os.scandir(top) if e.is_dir(follow_symlinks=False)]
            if not folders:
                break
            moved = [_empty(Path(folder.path), top, f"{number}-{place}") for place, folder in enumerate(folders)]
            if not any(moved):
                break
    shutil.rmtree(top, ignore_errors=True)


def _empty(folder: Path, top: Path, name: str) -> bool:
    """Deletes a folder; the folders in it become folders of `top`, under new names. False when it could not be done."""
    try:
        folder.chmod(0o700)
        for number, entry in enumerate(list(os.scandir(folder))):
            if entry.is_dir(follow_symlinks=False):
                Path(entry.path).chmod(0o700)  # a folder must allow writing to be moved
                Path(entry.path).rename(_unused(top, f".moved-{name}-{number}"))
            else:
                Path(entry.path).unlink()
        folder.rmdir()
    except OSError:
        return False
    return True


def _unused(top: Path, name: str) -> Path:
    while os.path.lexists(top / name):
        name += "-"
    return top / name


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
