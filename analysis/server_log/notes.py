"""What a log says beside its rows: counted warnings, and events for whoever joins it with replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

EventKind = Literal["http", "build", "start", "exception"]


@dataclass(frozen=True, slots=True)
class Event:
    """A line that names no task. ``launched`` is how many requests had been launched before it (all instances).

    http: method, path, status; build: text (``b10587-1a2b3c4`` or a plain number); start: a server came up;
    exception: text and, in ``status``, its code.
    """

    kind: EventKind
    launched: int
    instance: str | None = None
    text: str | None = None
    method: str | None = None
    path: str | None = None
    status: int | None = None


WORDING = {
    "half_line": ("last line cut off and left out", "last lines cut off and left out"),
    "restart": ("restart of the server", "restarts of the server"),
    "silent_restart": (
        "restart seen by task numbers or times starting again, without a start line",
        "restarts seen by task numbers or times starting again, without a start line",
    ),
    "no_launch": (
        "request without a launch line (the log begins in its middle, or lines are missing)",
        "requests without a launch line (the log begins in their middle, or lines are missing)",
    ),
    "still_open": ("request still open at the end of the log", "requests still open at the end of the log"),
    "lost_end": ("request whose end was never printed", "requests whose end was never printed"),
    "process_ended": ("request lost with its process", "requests lost with their process"),
    "binary": ("line with binary rubbish", "lines with binary rubbish"),
    "long_line": ("overlong line left out", "overlong lines left out"),
    "malformed": ("slot line that cannot be read", "slot lines that cannot be read"),
    "blob": ("line lost to journald as blob data", "lines lost to journald as blob data"),
    "orphan": (
        "timing or release line that belongs to no known request",
        "timing or release lines that belong to no known request",
    ),
    "repeated": (
        "timing or release line printed a second time, the first one counts",
        "timing or release lines printed a second time, the first ones count",
    ),
    "containers": ("further container in the same log", "further containers in the same log"),
    "mixed_eras": ("change of log format inside the log", "changes of log format inside the log"),
}


@dataclass
class Notes:
    """The shared notebook of one parse."""

    counts: Counter[str] = field(default_factory=Counter)
    on_event: Callable[[Event], None] | None = None
    launched: int = 0

    def warn(self, name: str, times: int = 1) -> None:
        self.counts[name] += times

    def event(self, kind: EventKind, **fields: str | int | None) -> None:
        if self.on_event is not None:
            self.on_event(Event(kind=kind, launched=self.launched, **fields))  # type: ignore[arg-type]

    def restarts(self) -> int:
        return self.counts["restart"] + self.counts["silent_restart"]

    def warnings(self) -> list[str]:
        """One line per kind, with its count, in a fixed order."""
        return [
            f"{self.counts[name]} {words[self.counts[name] != 1]}"
            for name, words in WORDING.items()
            if self.counts[name]
        ]
