"""Rows in launch order with bounded memory.

A row is ready when its own task has ended and every task launched before it has; rows behind a task that stays open
wait. Beyond ``limit`` waiting rows they go to an unnamed temporary file, in runs of consecutive places, and come back
when their place is reached.
"""

from __future__ import annotations

import pickle
import tempfile
from typing import IO

from analysis.server_log.rows import RequestRow

RUN = 1000


class LaunchOrder:
    """Places are handed out by :meth:`place`; each must be filled (or given up) once."""

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._next_place = 0
        self._head = 0
        self._waiting: dict[int, RequestRow | None] = {}
        self._spilled: dict[int, int] = {}
        self._file: IO[bytes] | None = None
        self.ready: list[RequestRow] = []

    def place(self) -> int:
        """The next place in launch order."""
        place = self._next_place
        self._next_place = place + 1
        return place

    def fill(self, place: int, row: RequestRow | None) -> None:
        """Put the row of a place; ``None`` gives the place up (its task was launched later, under another)."""
        if place == self._head:
            if row is not None:
                self.ready.append(row)
            self._head = place + 1
            if self._waiting or self._spilled:
                self._advance()
            return
        self._waiting[place] = row
        if len(self._waiting) > self._limit:
            self._spill()

    def take(self) -> list[RequestRow]:
        """The rows that became ready since the last call."""
        ready, self.ready = self.ready, []
        return ready

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _advance(self) -> None:
        waiting, head = self._waiting, self._head
        while True:
            if head in self._spilled:
                self._load(head)
            if head not in waiting:
                break
            row = waiting.pop(head)
            if row is not None:
                self.ready.append(row)
            head += 1
        self._head = head

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="server_log_")  # noqa: SIM115 - closed by close()
        self._file.seek(0, 2)
        places = sorted(self._waiting)
        start = 0
        for end in range(1, len(places) + 1):
            broken = end == len(places) or places[end] != places[end - 1] + 1
            if broken or end - start == RUN:
                rows = [self._waiting[place] for place in places[start:end]]
                self._spilled[places[start]] = self._file.tell()
                pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)
                start = end
        self._waiting.clear()

    def _load(self, place: int) -> None:
        assert self._file is not None
        self._file.seek(self._spilled.pop(place))
        for offset, row in enumerate(pickle.load(self._file)):
            self._waiting[place + offset] = row
