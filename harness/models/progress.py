"""What a long fetch says while it goes on: lines, and a bar where stderr is a terminal. stdout is never touched."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from harness.models.sizes import human_size


class FetchProgress(Protocol):
    """Told of every announcement and of how far a file has come."""

    def say(self, line: str) -> None:
        """One announcement: a fallback, a resume, a wait."""

    def at(self, what: str, done: int, total: int | None) -> None:
        """`done` bytes of `total` are there; `what` names the file or the part under way."""


class LineProgress:
    """Plain lines: every announcement, and the state at each new tenth of the whole."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._tenth: int | None = None

    def __enter__(self) -> LineProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def at(self, what: str, done: int, total: int | None) -> None:
        tenth = done * 10 // total if total else done // (100 << 20)
        if tenth == self._tenth:
            return
        self._tenth = tenth
        self.say(f"{what}: {human_size(done)}" + (f" of {human_size(total)}" if total else ""))


class BarProgress:
    """A bar by rich; announcements appear above it."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("", visible=False)

    def __enter__(self) -> BarProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False)

    def at(self, what: str, done: int, total: int | None) -> None:
        self._bar.update(self._task, description=what, completed=done, total=total, visible=True)


def stderr_progress() -> BarProgress | LineProgress:
    """A bar when stderr is a terminal, plain lines otherwise; a context manager either way."""
    console = Console(stderr=True)
    return BarProgress(console) if console.is_terminal else LineProgress()
