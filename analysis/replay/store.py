"""Token ids by piece of text, kept on disk per model file: a model is loaded once for a text and never again."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Iterator, MutableMapping
from pathlib import Path


class TokenStore(MutableMapping[str, tuple[int, ...]]):
    """A mapping from a piece's key to its tokens, in memory in front of a file of its own per model digest.

    A file that can't be opened or written is left alone: then everything is kept in memory only.
    """

    def __init__(self, folder: Path | None, model_sha256: str) -> None:
        self._memory: dict[str, tuple[int, ...]] = {}
        self._waiting: dict[str, tuple[int, ...]] = {}
        self._file = None if folder is None else _open(folder, model_sha256)

    def __getitem__(self, key: str) -> tuple[int, ...]:
        found = self._memory.get(key)
        if found is None:
            found = self._memory[key] = self._read(key)
        return found

    def __setitem__(self, key: str, tokens: tuple[int, ...]) -> None:
        self._memory[key] = self._waiting[key] = tokens

    def __delitem__(self, key: str) -> None:
        del self._memory[key]
        self._waiting.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._memory)

    def __len__(self) -> int:
        return len(self._memory)

    def save(self) -> None:
        """Writes what is new."""
        if self._file is None or not self._waiting:
            return
        rows = [(_digest(k), array("i", v).tobytes()) for k, v in self._waiting.items()]
        try:
            with self._file:
                self._file.executemany("INSERT OR IGNORE INTO pieces VALUES (?, ?)", rows)
        except sqlite3.Error:
            return
        self._waiting = {}

    def close(self) -> None:
        self.save()
        if self._file is not None:
            self._file.close()

    def _read(self, key: str) -> tuple[int, ...]:
        if self._file is None:
            raise KeyError(key)
        try:
            row = self._file.execute("SELECT tokens FROM pieces WHERE key = ?", (_digest(key),)).fetchone()
        except sqlite3.Error:
            row = None
        if row is None:
            raise KeyError(key)
        return tuple(array("i", row[0]))


def _open(folder: Path, model_sha256: str) -> sqlite3.Connection | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(folder / f"{model_sha256[:16]}.sqlite", timeout=30)
        file.execute("CREATE TABLE IF NOT EXISTS pieces (key BLOB PRIMARY KEY, tokens BLOB) WITHOUT ROWID")
    except (OSError, ValueError, sqlite3.Error):  # ValueError: a path no file system can have
        return None
    return file


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
