"""The test guard: the tests that were there at the start stay as they were (published/rules.md section 3).

Covered are top-level functions named `test…` of files matching `test_*.py`, compared after parsing and unparsing, so that
blanks and comments do not count. Adding tests, helpers and imports is allowed. Not caught, as published: pytestmark,
conftest.py, changed helpers or imports, methods of test classes, async tests, files named `*_test.py`.
"""

from __future__ import annotations

import ast
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from harness.agent.files_below import read_plain

PATTERN = "test_*.py"


@dataclass(frozen=True)
class PutBack:
    """A file that the guard restored, and the tests that were missing or changed in it."""

    path: str
    names: tuple[str, ...]

    @property
    def note(self) -> str:
        return (
            f"{self.path} was put back: the existing tests {', '.join(self.names)} are read-only. "
            "Add new test functions instead of changing these."
        )


def test_functions(text: str) -> dict[str, str]:
    """Name -> normalised source of the top-level test functions of a module; empty for a text that does not parse."""
    try:
        body = ast.parse(text).body
        return {n.name: ast.unparse(n) for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


@dataclass
class _Kept:
    functions: dict[str, str]
    last_good: bytes


@dataclass
class TestGuard:
    """Remembers the test files below `root` and puts them back when an original test is gone or differs."""

    __test__ = False

    root: Path
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted(self.root.rglob(PATTERN)):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                name = path.relative_to(self.root).as_posix()
                self._kept[name] = _Kept(test_functions(_decode(data)), data)

    def check(self) -> list[PutBack]:
        """Compares every kept file, restores where needed and says what was restored; idempotent."""
        restored = []
        for name, kept in self._kept.items():
            path = self.root / name
            data = None if _reached_by_link(self.root, path) else read_plain(path)
            now = test_functions(_decode(data)) if data is not None else {}
            broken = tuple(n for n, source in kept.functions.items() if now.get(n) != source)
            if broken:
                _write_back(self.root, path, kept.last_good)
                restored.append(PutBack(name, broken))
            elif data is not None:
                kept.last_good = data
        return restored


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


def _reached_by_link(root: Path, path: Path) -> bool:
    """Whether a folder on the way was replaced by a link, which may lead out of the copy."""
    return any(place.is_symlink() for place in path.parents if place != root and place.is_relative_to(root))


def _write_back(root: Path, path: Path, data: bytes) -> None:
    """Writes `data` to `path` whatever the model put in the way (a link, a folder, a pipe); never through a link."""
    place = root
    root.chmod(stat.S_IMODE(root.stat().st_mode) | stat.S_IRWXU)
    for part in path.relative_to(root).parts[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
        place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRWXU)
    if path.is_dir() and not path.is_symlink():
        aside = path.with_name(path.name + ".moved")
        while os.path.lexists(aside):
            aside = aside.with_name(aside.name + "-")
        path.rename(aside)
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(data)
