"""The parser: blocks of lines in, rows in launch order out.

Contract: any bytes are survived. Only a source that cannot be read, is empty, or has no line of llama-server's raises
:class:`LogError`. Memory does not grow with the log: rows leave as soon as every earlier request has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from analysis.server_log.detection import Era
from analysis.server_log.errors import LogError
from analysis.server_log.notes import Event, Notes
from analysis.server_log.order import LaunchOrder
from analysis.server_log.process import Process
from analysis.server_log.rows import RequestRow
from analysis.server_log.source import Block, Source, blocks, label
from analysis.server_log.tagged import feed
from analysis.server_log.wrappers import Wrapper

Key = tuple[bytes | None, bytes | None]

COMPLETE = re.compile(
    rb"(?:truncated = [01]|truncated=(?:true|false)|tokens per second\)|, end\)|tokens in cache\)|\[task id: \d+\]"
    rb"|to process: \d+ tokens|processing task(?:, is_child = [01])?|request: [A-Z]+ \S+ \S+ \d{3}"
    rb"|got exception: .*\}\}|\A(?!.*got exception).*\})\s*\Z"
)
"""Ends after which nothing can be missing: a last line without its line end counts only with one of these."""


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """A whole log. ``requests`` are in the order of their launch lines."""

    era: str | None
    wrapper: str
    requests: list[RequestRow]
    warnings: list[str]
    restarts: int = 0
    containers: int = 1
    events: list[Event] = field(default_factory=list)


class LogStream:
    """The rows of a log one by one, in launch order and bounded memory. To be iterated once.

    ``era``, ``wrapper``, ``warnings``, ``restarts`` and ``containers`` are final once the iteration is over.
    """

    def __init__(self, source: Source, *, on_event: Callable[[Event], None] | None = None) -> None:
        self._source = source
        self._notes = Notes(on_event=on_event)
        self._order = LaunchOrder()
        self._wrapper = Wrapper()
        self._era = Era()
        self._processes: dict[Key, Process] = {}
        self._router_runs: dict[bytes | None, int] = {}
        self._main = self._process((None, None))

    @property
    def era(self) -> str | None:
        return self._era.name()

    @property
    def wrapper(self) -> str:
        return self._wrapper.name()

    @property
    def restarts(self) -> int:
        return self._notes.restarts()

    @property
    def containers(self) -> int:
        """Containers with requests."""
        return self._notes.counts["containers"] + 1

    @property
    def warnings(self) -> list[str]:
        return self._notes.warnings()

    def __iter__(self) -> Iterator[RequestRow]:
        empty = True
        try:
            for block in blocks(self._source, self._notes):
                empty = False
                self._read(block)
                yield from self._order.take()
            if empty:
                raise LogError(
                    f"{label(self._source)} is empty; give the server's own output (stderr, or stdout before 2024-09)"
                )
            for process in self._processes.values():
                process.finish()
            if not (self._era.is_server or self._notes.launched):
                raise LogError(
                    f"{label(self._source)} is not a llama-server log: no line of it looks like the server's"
                )
            self._count_sources()
            yield from self._order.take()
        finally:
            self._order.close()

    def _read(self, block: Block) -> None:
        data = self._wrapper.clean(block.data)
        if not block.whole and not COMPLETE.search(data):
            self._notes.warn("half_line")
            return
        if b"\0" in data or not data.isascii():
            data = self._without_rubbish(data)
        self._era.look(data)
        lines = data.split(b"\n")
        self._wrapper.look(data, lines)
        if self._wrapper.many_sources:
            self._feed_by_source(lines)
        else:
            feed(self._main, lines)

    def _without_rubbish(self, data: bytes) -> bytes:
        if b"\0" not in data:
            try:
                data.decode()
                return data
            except UnicodeDecodeError:
                pass
        self._notes.warn("binary", sum(1 for line in data.split(b"\n") if not _is_text(line)))
        return data.replace(b"\0", b"")

    def _feed_by_source(self, lines: list[bytes]) -> None:
        """Lines of the same source that stand together are read together."""
        key: Key | None = None
        together: list[bytes] = []
        for line in lines:
            if not line:
                continue
            found = self._wrapper.source(line)
            if found != key:
                if key is not None:
                    feed(self._process(key), together)
                key, together = found, []
            together.append(line)
        if key is not None:
            feed(self._process(key), together)

    def _process(self, key: Key) -> Process:
        process = self._processes.get(key)
        if process is None:
            name, port = key
            process = self._processes[key] = Process(
                self._notes,
                self._order,
                self._started,
                instance=port.decode() if port is not None else None,
                container=name.decode() if name is not None else None,
                run=self._router_runs.get(name, 0),
            )
        return process

    def _started(self, process: Process) -> None:
        """A server came up: a restart if it, or a child of this router, had requests before."""
        key = next(key for key, value in self._processes.items() if value is process)
        name, port = key
        self._notes.event("start", instance=process.instance)
        family = [process] if port is not None else [other for (of, _), other in self._processes.items() if of == name]
        if not any(member.seen for member in family):
            return
        self._notes.warn("restart")
        self._era.again()
        for member in family:
            member.restart()
        if port is None:
            self._router_runs[name] = self._router_runs.get(name, 0) + 1

    def _count_sources(self) -> None:
        containers = {process.container for process in self._processes.values() if process.run or process.seen}
        if len(containers) > 1:
            self._notes.warn("containers", len(containers) - 1)
        if len(self._era.names()) > 1:
            self._notes.warn("mixed_eras", len(self._era.names()) - 1)


def _is_text(line: bytes) -> bool:
    if b"\0" in line:
        return False
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def stream(source: Source, *, on_event: Callable[[Event], None] | None = None) -> LogStream:
    """Iterate over the rows of a log (a path, or lines) without holding them."""
    return LogStream(source, on_event=on_event)


def parse(source: Source) -> ParsedLog:
    """Read a whole log (a path, or lines of str or bytes). Raises :class:`LogError`."""
    events: list[Event] = []
    log = LogStream(source, on_event=events.append)
    requests = list(log)
    return ParsedLog(log.era, log.wrapper, requests, log.warnings, log.restarts, log.containers, events)
