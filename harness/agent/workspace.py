"""What the agent knows of the copy it works on. harness.workspace has the real ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class OutsideWorkspace(ValueError):
    """A path that resolves outside the copy."""


@dataclass(frozen=True)
class CommandResult:
    """One command's end. exit_code: as the shell gives it (128+N for a signal), None when it never ended by itself.

    limit names the limit that was hit: time, memory, processes, file_size, disk, output; None when none was.
    output_chars counts what was printed before any cap; truncated tells that stdout and stderr hold less.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    timed_out: bool
    ms: float
    limit: str | None = None
    output_chars: int = 0
    truncated: bool = False


@dataclass(frozen=True)
class TreeChange:
    """The copy after a change: its digest, and what differs from the last look (the `tree` event's `changes`)."""

    digest: str
    changes: list[dict[str, Any]]


class Workspace(Protocol):
    """A fresh copy of the repo. root: the folder on this machine. mount: the same folder as commands see it."""

    root: Path
    mount: str

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Runs a shell command inside the sandbox with the copy as its current directory, stdin empty."""
        ...

    def resolve(self, path: str) -> Path:
        """The file on this machine that `path` (relative, or absolute below `mount`) names; raises OutsideWorkspace."""
        ...

    def tree_change(self) -> TreeChange | None:
        """What changed in the copy since the last call of this method (since the start, the first time); None if nothing."""
        ...
