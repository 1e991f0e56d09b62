"""The files of a copy, whatever commands have made of it: no depth is too deep, nothing that can't be looked at is an error."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def files_below(root: Path, hidden: bool = True) -> Iterator[str]:
    """Paths relative to `root`, with slashes, of all that is no folder, links to folders included; links are not followed.

    hidden: also those with a part that starts with a dot.
    """
    todo = [""]
    while todo:
        prefix = todo.pop()
        try:
            with os.scandir(root / prefix) as listing:
                found = list(listing)
        except OSError:
            continue
        for entry in found:
            if entry.name.startswith(".") and not hidden:
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name


def read_plain(path: Path, most: int = 16 * 2**20) -> bytes | None:
    """A plain file's bytes; None for a link, a pipe, a device, an unreadable file and one larger than `most`."""
    try:
        held = path.lstat()
        return path.read_bytes() if stat.S_ISREG(held.st_mode) and held.st_size <= most else None
    except OSError:
        return None
