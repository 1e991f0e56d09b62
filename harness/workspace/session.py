"""The harness's end of a runner process: starts it, hands it one command at a time, ends it.

A session belongs to one thread at a time. Whatever interrupts a request (Ctrl-C, a dead runner, a runner that does not answer in
time) ends the session, as an answer that came late would be taken for the next command's.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.workspace.runner import below

START_S = 20.0
GRACE_S = 15.0
WATCH_S = 0.5


class SessionEnded(RuntimeError):
    """The runner is gone or was ended; the message is what it said last. began: whether it had begun the command."""

    began = False


class _Launcher:
    """One thread for the whole process that starts the runners.

    The kernel sends the parent-death signal when the *thread* that started a process ends; a runner started in a short-lived thread
    would die with it.
    """

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sandbox-launcher")

    def popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        return self._pool.submit(subprocess.Popen, *args, **kwargs).result()


_launcher = _Launcher()
_open: set[Session] = set()


@atexit.register
def _close_all() -> None:
    for session in list(_open):
        session.kill()


class Session:
    """A running runner. Raises SessionEnded when it does not come up; its message is the starter's last error line."""

    def __init__(self, command: Sequence[str], pass_fds: Sequence[int] = (), env: dict[str, str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        self._process = _launcher.popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=tuple(pass_fds),
            env=env,
            start_new_session=True,
            bufsize=0,
        )
        _open.add(self)
        try:
            self._receive(time.monotonic() + START_S, None)
        except SessionEnded as e:
            _open.discard(self)
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            raise SessionEnded(said[-1] if said else str(e)) from None
        finally:
            if not self.alive:
                self.kill()

    @property
    def alive(self) -> bool:
        return self in _open and self._process.poll() is None

    @property
    def pids(self) -> list[int]:
        """The starter and all that runs below it."""
        return [self._process.pid, *below(self._process.pid)]

    def request(self, message: dict[str, Any], watch: Callable[[], str | None] | None = None) -> dict[str, Any]:
        """One command's answer. `watch` is asked now and then while it runs; the limit it names ends the command."""
        deadline = time.monotonic() + message["timeout_s"] + GRACE_S
        marks = os.fstat(self._errors.fileno()).st_size
        try:
            self._send(message)
            return self._receive(deadline, watch)
        except BaseException as e:
            if isinstance(e, SessionEnded):
                e.began = os.fstat(self._errors.fileno()).st_size > marks
            self.kill()
            raise

    def close(self) -> None:
        """Ends the runner and everything below it."""
        self.kill()

    def kill(self) -> None:
        _open.discard(self)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # the runner takes the end of its input for the harness's death
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        # The starter may not be allowed to end a runner that became another user, so both are ended here.
        for pid in [*below(self._process.pid), self._process.pid] if self._process.poll() is None else []:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        data = struct.pack(">I", len(body)) + body
        try:
            while data:
                data = data[os.write(self._process.stdin.fileno(), data) :]
        except OSError as e:
            raise SessionEnded(f"the runner is gone ({e.strerror})") from e

    def _receive(self, deadline: float, watch: Callable[[], str | None] | None) -> dict[str, Any]:
        poller = select.poll()
        fd = self._process.stdout.fileno()
        poller.register(fd, select.POLLIN)
        data, need, stopped = bytearray(), 4, False
        while len(data) < need:
            left = deadline - time.monotonic()
            if left <= 0:
                raise SessionEnded("the runner did not answer in time")
            wait = min(left, WATCH_S) if watch and not stopped else left
            if not poller.poll(int(wait * 1000) + 1):
                limit = watch() if watch and not stopped else None
                if limit:
                    self._send({"stop": limit})
                    stopped = True
                continue
            part = os.read(fd, need - len(data))
            if not part:
                raise SessionEnded("the runner ended")
            data += part
            if need == 4 and len(data) >= 4:
                need = 4 + struct.unpack(">I", data[:4])[0]
        return json.loads(bytes(data[4:need]))
