"""How much disk a command's files take, in ways that can't be kept from being seen."""

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from harness.workspace import paths

LEAST_BYTES = 4096  # what a file counts at least: names alone can fill a disk, and a walk of them takes time
RESERVE_BYTES = 256 * 2**20


def used(*tops: Path) -> float:
    """Bytes of everything below the folders, the larger of room taken and size: holes are no way round, as copies fill them.

    A path too long to look at is infinite: anything might be there.
    """
    hidden: list[OSError] = []
    found = sum(
        max(e.stat.st_blocks * 512, e.stat.st_size, LEAST_BYTES)
        for top in tops
        for e in paths.walk(top, unseen=hidden.append)
    )
    return math.inf if any(e.errno == errno.ENAMETOOLONG for e in hidden) else found


def nameless(pids: Iterable[int]) -> int:
    """Bytes of the files that these processes hold open and that no name leads to any more."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            try:
                held = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
            except OSError:
                continue
            if stat.S_ISREG(held.st_mode) and held.st_nlink == 0:
                found[held.st_dev, held.st_ino] = held.st_blocks * 512
    return sum(found.values())


def free(top: Path) -> int:
    """Bytes that may still be written where `top` is."""
    system = os.statvfs(top)
    return system.f_bavail * system.f_frsize
