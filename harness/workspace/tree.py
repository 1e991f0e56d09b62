"""What a copy holds at one moment, what changed between two moments, and the whole change as a diff.

Caches of Python and pytest and git's own folder are not part of a tree: running the tests or committing is no change of the code.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.workspace.paths import MOST_BYTES, Entry, remove, walk

if TYPE_CHECKING:
    from harness.workspace.tasks import Task

SKIPPED = frozenset({"__pycache__", ".pytest_cache", ".git"})
LARGE = 2**20


@dataclass(frozen=True)
class Tree:
    """digest: over names and contents. files: SHA-256 of each file's content by path; a link counts as the text of its target.

    unread: files that were too much to read (MOST_BYTES); their size stands for their content, and nobody copies them.
    """

    digest: str
    files: dict[str, str]
    unread: frozenset[str] = frozenset()


def entries(root: Path) -> Iterator[Entry]:
    """The files and links of a tree."""
    for entry in walk(root, SKIPPED):
        if entry.is_link or (entry.is_file and not entry.name.endswith(".pyc")):
            yield entry


def content(path: Path) -> bytes:
    """A file's bytes; of a link, the text of its target. Nothing of a file that can't be read."""
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return b""


def snapshot(root: Path) -> Tree:
    files, unread, left = {}, set(), MOST_BYTES
    for entry in sorted(entries(root), key=lambda e: e.name):
        if entry.stat.st_size <= left:
            left -= entry.stat.st_size
            files[entry.name] = _sha256(Path(entry.path))
        else:
            files[entry.name] = hashlib.sha256(f"{entry.stat.st_size} bytes, not read".encode()).hexdigest()
            unread.add(entry.name)
    lines = "".join(f"{sha} {name}\n" for name, sha in files.items())
    return Tree(hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest(), files, frozenset(unread))


def differing(before: Tree, after: Tree) -> list[str]:
    """The paths that were added, changed or deleted, sorted."""
    names = sorted(before.files.keys() | after.files.keys())
    return [name for name in names if before.files.get(name) != after.files.get(name)]


def printable(name: str) -> str:
    """A file's name as text that can be written down, whatever its bytes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def changes(before: Tree, after: Tree, root: Path) -> list[dict[str, Any]]:
    """The changed files as the `tree` event holds them: {path, sha256, text, base64, deleted}, read from `root` as it is now.

    text is null for a deleted or binary file, base64 holds binary ones; both are null for files over 1 MiB; a link has its target
    as text and `link` true.
    """
    return [_change(name, after.files.get(name), root / name) for name in differing(before, after)]


def _change(name: str, sha256: str | None, place: Path) -> dict[str, Any]:
    change: dict[str, Any] = {
        "path": printable(name),
        "sha256": sha256,
        "text": None,
        "base64": None,
        "deleted": sha256 is None,
    }
    if sha256 is None:
        return change
    if place.is_symlink():
        change["link"] = True
    elif place.stat().st_size > LARGE:
        return change
    data = content(place)
    change["text"] = as_text(data)
    if change["text"] is None:
        change["base64"] = base64.b64encode(data).decode()
    return change


def _sha256(path: Path) -> str:
    if path.is_symlink():
        return hashlib.sha256(content(path)).hexdigest()
    try:
        with path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()
    except OSError:
        return hashlib.sha256(b"").hexdigest()


def lay(changed: Iterable[dict[str, Any]], root: Path) -> None:
    """Makes the changes of a `tree` event in `root`. ValueError when one was too large to be recorded, or leads out of `root`."""
    for change in changed:
        if Path(change["path"]).is_absolute() or ".." in Path(change["path"]).parts:
            raise ValueError(f"{change['path']}: leads out of the tree")
        place = root / change["path"]
        make_way(root, change["path"])
        if change["deleted"]:
            continue
        if change.get("link"):
            place.symlink_to(change["text"])
        elif change["text"] is not None:
            place.write_bytes(change["text"].encode())
        elif change["base64"] is not None:
            place.write_bytes(base64.b64decode(change["base64"]))
        else:
            raise ValueError(f"{change['path']}: too large to have been recorded; this tree can't be rebuilt")


def make_way(root: Path, name: str) -> None:
    """Makes the folders above a path and removes what stands in its place, links included, so that a write can't leave `root`."""
    place = root
    parts = Path(name).parts
    for part in parts[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
    place = place / parts[-1]
    if place.is_dir() and not place.is_symlink():
        remove(place)
    else:
        place.unlink(missing_ok=True)


def diff(task: Task, root: Path) -> str:
    """The changes of a copy against the task's repo as one unified diff; binary and large files are named, not shown."""
    before, after = snapshot(task.repo), snapshot(root)
    parts = []
    for name in differing(before, after):
        old = task.repo / name if name in before.files else None
        new = root / name if name in after.files else None
        parts.append(_one_diff(printable(name), old, new))
    return "".join(parts)


def as_text(data: bytes) -> str | None:
    """The text of a file, None for a binary one."""
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _one_diff(name: str, old: Path | None, new: Path | None) -> str:
    source, target = f"a/{name}" if old else "/dev/null", f"b/{name}" if new else "/dev/null"
    large = any(path.lstat().st_size > LARGE for path in (old, new) if path)
    texts = [None if large else as_text(content(path)) if path else "" for path in (old, new)]
    if None in texts:
        return f"Binary files {source} and {target} differ\n"
    lines = [re.findall(r"[^\n]*\n|[^\n]+", text) for text in texts]
    out = list(difflib.unified_diff(*lines, source, target)) or [f"--- {source}\n", f"+++ {target}\n"]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out)
