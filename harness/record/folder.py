"""One run's folder, `runs/<experiment>/<run id>/`, and how its files come to be.

result.json is written last and atomically: where it stands, the run is finished. A folder without it is a half run: it is
started afresh and nothing of it is counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST, EVENTS, SERVER_LOG = "manifest.json", "events.jsonl", "server.log"
DIFF, GRADING, RESULT = "workspace.diff", "grading.json", "result.json"
HYDRA = "hydra"  # hydra.output_subdir in conf/config.yaml


class RecordError(ValueError):
    """A run folder that can't be read; the message names the file and what is wrong."""


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks: the same text for the same value everywhere."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def run_id(identity: dict[str, Any]) -> str:
    """The first 12 hex digits of the SHA-256 of what can change the result."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()[:12]


def write_atomically(path: Path, text: str) -> None:
    """Writes a whole file or nothing; survives a crash between the two."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        part.replace(path)
    except OSError as e:
        part.unlink(missing_ok=True)
        # A full disk's error names no file: say which one, so that the line can be acted on.
        raise OSError(e.errno, f"{e.strerror}; free some room or choose another folder", str(path)) from e


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Reads a JSON file; raises RecordError with one line for a missing or damaged one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise RecordError(f"{path}: can't be read ({e.strerror})") from e
    except ValueError as e:
        raise RecordError(f"{path}: not JSON ({e})") from e


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def finished(self) -> bool:
        return (self.path / RESULT).is_file()

    def begin(self) -> None:
        """Makes the folder empty: the leftovers of a half run go, only Hydra's own output (written before this) stays."""
        if self.finished:
            raise RecordError(f"{self.path}: this run is finished; it is not run again")
        self.path.mkdir(parents=True, exist_ok=True)
        for item in self.path.iterdir():
            if item.name == HYDRA:
                continue
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item, ignore_errors=True)
            else:
                item.unlink()

    @property
    def events(self) -> Path:
        return self.path / EVENTS

    @property
    def server_log(self) -> Path:
        return self.path / SERVER_LOG

    def manifest(self) -> dict[str, Any]:
        return read_json(self.path / MANIFEST)

    def grading(self) -> dict[str, Any]:
        return read_json(self.path / GRADING)

    def result(self) -> dict[str, Any]:
        return read_json(self.path / RESULT)


def find_runs(root: Path) -> list[RunFolder]:
    """The run folders at or below `root` (those with a manifest), in the order of their paths.

    What lies in a run folder is not looked at: in the copy of a run that goes on, or was cut off, an agent may write what it likes.
    A folder that can't be listed holds none; where nothing else is found, the first one that may not be read is the error.
    """
    if not root.is_dir():
        raise RecordError(f"{root}: no such folder")
    found: list[Path] = []
    shut: list[Path] = []
    todo = [root]
    while todo:
        folder = todo.pop()
        with contextlib.suppress(OSError):  # gone meanwhile, or deeper than the system takes
            if not os.access(folder, os.R_OK | os.X_OK):
                shut.append(folder)
                continue
            if (folder / MANIFEST).is_file():
                found.append(folder)
                continue
            todo += [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    if shut and not found:
        raise RecordError(f"{min(shut)}: can't be read (Permission denied)")
    return [RunFolder(folder) for folder in sorted(found)]
