"""events.jsonl: append-only, one flushed line per event, enough to rebuild every request exactly.

Every line holds `v` (format version), `i` (0, 1, …), `t` (seconds since the run began) and `event` (the kind); the other
fields depend on the kind and are listed in docs/run_folder.md. A line is written whole and flushed before the next step
begins, so a killed run leaves at most one half line, which `read_events` drops.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

VERSION = 1


class EventError(ValueError):
    """An events file that can't be read; the message names the file and the line."""


class EventSink(Protocol):
    """Where the agent reports what happens."""

    def emit(self, event: str, **fields: Any) -> None: ...


class EventWriter:
    """Writes events to a new file; usable as a context manager."""

    def __init__(self, path: Path, listener: EventSink | None = None) -> None:
        self._file = path.open("x", encoding="utf-8")
        self._start = time.monotonic()
        self._count = 0
        self._listener = listener

    def emit(self, event: str, **fields: Any) -> None:
        head = {"v": VERSION, "i": self._count, "t": round(time.monotonic() - self._start, 4), "event": event}
        self._file.write(_line(head | fields) + "\n")
        self._file.flush()
        self._count += 1
        if self._listener is not None:
            self._listener.emit(event, **fields)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _line(event: dict[str, Any]) -> str:
    """One line of JSON; with escapes where a text (a file's name, say) holds a lone surrogate, which UTF-8 can't carry."""
    text = json.dumps(event, ensure_ascii=False)
    return text if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text) else json.dumps(event)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the events of a file in order.

    Raises:
        EventError: a line that is not JSON (a half last line is dropped), a number out of order, or another version.
    """
    try:
        data = path.read_bytes()
    except OSError as e:
        raise EventError(f"{path}: can't be read ({e.strerror})") from e
    lines = data.split(b"\n")
    for number, raw in enumerate(lines):
        if not raw:
            continue
        try:
            event = json.loads(raw)
        except ValueError as e:
            if number == len(lines) - 1:
                return
            raise EventError(f"{path}, line {number + 1}: not a JSON event") from e
        if not isinstance(event, dict):
            raise EventError(f"{path}, line {number + 1}: not a JSON event")
        if event.get("v") != VERSION:
            raise EventError(f"{path}, line {number + 1}: event format {event.get('v')}, this version reads {VERSION}")
        if event.get("i") != number:
            raise EventError(f"{path}, line {number + 1}: event number {event.get('i')}, expected {number}")
        yield event
