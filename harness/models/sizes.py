"""Sizes for people, and whether they fit on the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.models.errors import ModelError


def human_size(count: int) -> str:
    """A number of bytes in decimal units, as disks and downloads are sold: `1.1 GB`, `98 MB`, `12 B`."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if count < 10 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"


def require_space(folder: Path, needed: int) -> None:
    """Raise ModelError when `folder`'s disk has fewer than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            f"not enough disk space in {folder}: {human_size(needed)} needed, {human_size(free)} free; "
            "free some, or set CALLEDSHOT_CACHE to a folder on another disk"
        )
