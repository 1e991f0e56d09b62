"""Digests of large files, computed once per state of the file.

The result is kept as a stamp `{size, mtime_ns, sha256}`: beside a file of the model cache, and in the cache's `stamps`
folder for a file elsewhere (the user's folders are never written to). A stamp counts only while size and modification
time are the file's; anything else, a damaged stamp included, means hashing again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

CHUNK = 1 << 20


def sha256_of(path: Path, folder: Path, on_hash: Callable[[], None] | None = None) -> str:
    """The hex sha256 of a file, from its stamp where that is valid; `folder` is the model cache.

    `on_hash` is called before the whole file is read. Raises OSError.
    """
    known = stamped(path, folder)
    if known is not None:
        return known
    if on_hash is not None:
        on_hash()
    before = path.stat()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    after = path.stat()
    # A file written to meanwhile gets no stamp: the digest may be of neither state.
    if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
        _write(_stamp(path, folder), {"size": after.st_size, "mtime_ns": after.st_mtime_ns, "sha256": digest})
    return digest


def stamped(path: Path, folder: Path) -> str | None:
    """The digest the stamp holds for the file as it is now, or None. Never reads the file itself."""
    try:
        state = path.stat()
        stamp = json.loads(_stamp(path, folder).read_text(encoding="utf-8"))
        valid = stamp["size"] == state.st_size and stamp["mtime_ns"] == state.st_mtime_ns
        return str(stamp["sha256"]) if valid else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget(path: Path, folder: Path) -> None:
    """Drop the stamp, so that the next question reads the whole file."""
    with contextlib.suppress(OSError):
        _stamp(path, folder).unlink(missing_ok=True)


def rename(path: Path, target: Path, folder: Path) -> None:
    """Put a file under another name, atomically, and its stamp with it. Raises OSError."""
    path.replace(target)
    with contextlib.suppress(OSError):
        _stamp(path, folder).replace(_stamp(target, folder))


def _stamp(path: Path, folder: Path) -> Path:
    path = path.absolute()
    if path.parent == folder.absolute():
        return path.with_name(path.name + ".sha256.json")
    return folder / "stamps" / (hashlib.sha256(os.fsencode(path)).hexdigest()[:32] + ".json")


def _write(path: Path, stamp: dict[str, object]) -> None:
    # A cache that cannot be written costs the time of hashing again, nothing else.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".stamp-", delete=False) as file:
            json.dump(stamp, file)
        Path(file.name).replace(path)
