"""The state of one server process as its lines go by: open tasks, their ends, restarts.

Contract: the era modules call the methods below with what a line says; nothing here reads text except the slot and the
time in front of a launch. A task leaves :attr:`Process.tasks` once enough other tasks have ended after it, because
timings (b3678 to b6722), clean-up cancels and exceptions come after the release line.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from analysis.server_log.notes import Notes
from analysis.server_log.order import LaunchOrder
from analysis.server_log.task import Task, row_of

LINGER = 32
"""Ended tasks kept open to late lines."""
REMEMBERED = 8192
"""Numbers of settled tasks remembered, so that a late clean-up line makes no new row."""
STRAYS = 1024
"""Tasks named without a launch line that are kept open at once."""
QUEUE_JUMP = 1000
"""Task 0 after a task beyond this number can only be another process."""
CLOCK_SLACK_S = 2
DIGITS = 18
"""Of a task number, at most: longer ones are rubbish."""
NEAR_LINES = 8
"""How many lines without a slot may lie between a cancel line and the exception of the same request."""

PLAIN_HEAD = re.compile(rb"(\d{1,9})\.(\d\d)\.\d{3}\.\d{3} [IWED] slot +\S*: id +(\d{1,9})$")
SLOT_HEAD = re.compile(rb"(?:(\d{1,9})\.(\d\d)\.\d{3}\.\d{3} )?(?:[IWED] )?slot +\S*: id +(\d{1,9})$")


class Process:
    """One server process: the main one of a log, or a router's child (``instance`` is its port)."""

    def __init__(
        self,
        notes: Notes,
        order: LaunchOrder,
        on_start: Callable[[Process], None],
        *,
        instance: str | None = None,
        container: str | None = None,
        run: int = 0,
    ) -> None:
        self.notes = notes
        self.on_start = on_start
        """Called for a line that says a server came up; whoever knows the router's children decides what it means."""
        self.instance = instance
        self.container = container
        self.run = run
        self.tasks: dict[bytes, Task] = {}
        self.header: Task | None = None
        """The task whose timing header came last: its untagged timing lines follow (b3761 to b9229)."""
        self.on_slot: dict[int, Task] = {}
        self.loose: deque[dict[str, float]] = deque(maxlen=64)
        """Era A timings waiting for the release line that names their slot."""
        self.lines = 0
        self.seen = False
        self._order = order
        self._linger: deque[Task] = deque()
        self._strays: dict[bytes, Task] = {}
        self._settled: set[bytes] = set()
        self._settled_order: deque[bytes] = deque()
        self._highest = 0
        self._clock = 0
        self._cancel: tuple[Task, int] | None = None

    # -- naming and launching -------------------------------------------------------------------------------------

    def launch_tagged(self, number: bytes, head: bytes, is_child: bool | None) -> None:
        """A launch line of eras C to E; ``head`` is the line up to the task number."""
        match = PLAIN_HEAD.match(head) or SLOT_HEAD.search(head)
        if match is None or not number.isdigit() or len(number) > DIGITS:
            self.notes.warn("malformed")
            return
        minutes, seconds, slot = match.groups()
        clock = int(minutes) * 60 + int(seconds) if minutes is not None else None
        self.launch(number, int(slot), is_child=is_child, clock=clock)

    def launch(
        self, number: bytes, slot: int, *, is_child: bool | None = None, clock: int | None = None, printf: bool = False
    ) -> None:
        task = self.tasks.get(number)
        known = task.launched if task is not None else number in self._settled
        if (
            known
            or (clock is not None and clock + CLOCK_SLACK_S < self._clock)
            or (number == b"0" and self._highest > QUEUE_JUMP)
        ):
            self.notes.warn("silent_restart")
            self.restart()
            task = None
        if clock is not None:
            self._clock = clock
        if task is None:
            task = Task()
            task.number = number
            self.tasks[number] = task
        else:
            self._order.fill(task.seq, None)
            self._strays.pop(number, None)
            if task.done:
                self._linger.remove(task)
                task.done = False
        before = self.on_slot.get(slot)
        if before is not None and not before.done:
            self._lose(before)
        if self._strays:
            for stray in [stray for stray in self._strays.values() if stray.slot == slot]:
                self._lose(stray)
        self.on_slot[slot] = task
        task.slot = slot
        task.launched = True
        task.is_child = is_child
        task.printf = printf
        task.seq = self._order.place()
        self.seen = True
        self.notes.launched += 1
        self.header = self._cancel = None
        value = int(number)
        if value > self._highest:
            self._highest = value

    def name_tagged(self, number: bytes, head: bytes) -> Task | None:
        """The task of a slot line that no launch line announced; ``None`` if it is settled or the line is broken."""
        if number in self._settled:
            return None
        match = SLOT_HEAD.search(head)
        if match is None or not number.isdigit() or len(number) > DIGITS:
            self.notes.warn("malformed")
            return None
        return self.name(number, int(match[3]))

    def name(self, number: bytes, slot: int | None) -> Task | None:
        """Find or begin a task named by any other line than its launch."""
        task = self.tasks.get(number)
        if task is not None:
            if task.slot is None:
                task.slot = slot
            return task
        if number in self._settled:
            return None
        task = Task()
        task.number = number
        task.slot = slot
        task.seq = self._order.place()
        self.tasks[number] = task
        self.seen = True
        if len(self._strays) >= STRAYS:
            self._lose(next(iter(self._strays.values())))
        self._strays[number] = task
        return task

    # -- ends -----------------------------------------------------------------------------------------------------

    def release(self, task: Task, count: int, truncated: bool | None) -> None:
        if task.released:
            self.notes.warn("repeated")
            return
        task.released = True
        task.release_n = count
        task.truncated = truncated
        self.header = None
        self._end(task)

    def send_error(self, number: bytes, text: str) -> None:
        task = self.name(number, None)
        if task is None:
            return
        if task.error is None:
            task.error = text
            task.sent_error = True
        if task.slot is None:
            self._end(task)

    def refuse_launch(self, number: bytes) -> None:
        task = self.name(number, None)
        if task is not None:
            task.refused_launch = True
            self._end(task)

    def cancel(self, number: bytes) -> None:
        """A cancel line: the client's doing when it comes before release, error and timings, else clean-up."""
        task = self.name(number, None)
        if task is None:
            return
        self._cancel = (task, self.lines)
        if not task.released and task.error is None and task.generated is None:
            task.cancelled = True
        if task.slot is None:
            self._end(task)

    def exception(self, code: int | None, text: str) -> None:
        """``got exception`` names no task: it belongs to the cancel line just before it, if there is one."""
        last, self._cancel = self._cancel, None
        self.notes.event("exception", instance=self.instance, text=text, status=code)
        # A 400 and a history that cannot be read are raised before there is a task.
        if last is None or code == 400 or text.startswith("Failed to parse tool call arguments"):
            return
        task, line = last
        if self.lines - line <= NEAR_LINES and task.error is None:
            task.error = text

    def wants_http(self) -> bool:
        """Whether an HTTP line makes a difference: most of a log's do not."""
        return self._cancel is not None or self.notes.on_event is not None

    def http(self, method: str, path: str, status: int) -> None:
        self._cancel = None
        self.notes.event("http", instance=self.instance, method=method, path=path, status=status)

    def ended(self) -> None:
        """The process is known to be gone: what is open failed with it."""
        for task in list(self.tasks.values()):
            if not task.released and task.error is None and not task.cancelled:
                task.process_ended = True
                self.notes.warn("process_ended")
        self._settle_all()

    def restart(self) -> None:
        """Task numbers and times begin again."""
        self.ended()
        self._settled.clear()
        self._settled_order.clear()
        self.on_slot.clear()
        self.loose.clear()
        self.header = self._cancel = None
        self.seen = False
        self._highest = self._clock = 0
        self.run += 1

    def finish(self) -> None:
        """The log ends here."""
        for task in self.tasks.values():
            if not (task.done or task.cancelled or task.error is not None):
                self.notes.warn("still_open")
        self._settle_all()

    def _end(self, task: Task) -> None:
        if task.done:
            return
        task.done = True
        if self._strays:
            self._strays.pop(task.number, None)
        linger = self._linger
        linger.append(task)
        if len(linger) > LINGER:
            self._settle(linger.popleft())

    def _lose(self, task: Task) -> None:
        """Another task stands where this one stood, and its end was never printed."""
        if not (task.cancelled or task.error is not None):
            self.notes.warn("lost_end")
        self._strays.pop(task.number, None)
        self._settle(task)

    def _settle_all(self) -> None:
        for task in list(self.tasks.values()):
            self._settle(task)
        self._linger.clear()
        self._strays.clear()

    def _settle(self, task: Task) -> None:
        number = task.number
        del self.tasks[number]
        task.done = True
        if not task.launched and task.slot is not None:
            self.notes.warn("no_launch")
        self._settled.add(number)
        order = self._settled_order
        order.append(number)
        if len(order) > REMEMBERED:
            self._settled.discard(order.popleft())
        row = row_of(task, instance=self.instance, run=self.run, container=self.container)
        self._order.fill(task.seq, row)
