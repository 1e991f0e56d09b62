"""A llama.cpp server of our own for one run: port, start, readiness, read-back, end. Shared by `embedded` and `launch`.

The kinds differ only in the command line; everything a run relies on is done here once.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.serving.client import ChatClient
from harness.serving.errors import ServingError
from harness.serving.process import ServerProcess
from harness.serving.running import RunningServer
from harness.settings import ServerSettings

HOST = "127.0.0.1"
PORT_TRIES = 5
_BIND_FAILED = re.compile(r"couldn't bind|failed to bind|address already in use", re.I)
_FLAG_REFUSED = re.compile(r"(?:invalid|unknown) argument: (\S+)")

# Makes the command line from (port, folder for saved slots).
Command = Callable[[int, Path], list[str]]


@contextmanager
def open_local(
    settings: ServerSettings, run_dir: Path, build: str | None, flags: list[str], command: Command
) -> Iterator[RunningServer]:
    """Starts a server, yields it ready and cold with its window read back, ends it on every way out.

    Its words go to run_dir/server.log. `flags` is what the record says of the start (no ports, no process numbers).
    Raises ServingError: port taken, ended early, not ready in time, another window than the asked one.
    """
    # llama-server offers to erase a slot only when it has a folder to save slots in; nothing is ever saved there.
    with tempfile.TemporaryDirectory(prefix="calledshot-slots-") as slots:
        process, port = _start(settings, run_dir, lambda port: command(port, Path(slots)))
        try:
            server = RunningServer(
                kind=settings.kind,
                base_url=f"http://{HOST}:{port}",
                log=process.log,
                flags=flags,
                pid=process.pid,
                cold=True,
                request_timeout_s=settings.request_timeout_s,
            )
            with ChatClient(server.base_url) as client:
                server.props = client.props()
            server.build = build or told_build(server.props)
            server.n_ctx = window(server.props)
            check_window(settings.n_ctx, server.n_ctx)
            yield server
        finally:
            process.stop()


def window(props: dict[str, Any] | None) -> int | None:
    """The window of one slot in tokens, as /props tells it."""
    generation = (props or {}).get("default_generation_settings")
    value = generation.get("n_ctx") if isinstance(generation, dict) else None
    return value if isinstance(value, int) and value > 0 else None


def told_build(props: dict[str, Any] | None) -> str | None:
    """The build as /props tells it, `bNUMBER-COMMIT`."""
    value = (props or {}).get("build_info")
    return value if isinstance(value, str) else None


def check_window(asked: int, got: int | None) -> None:
    """A run whose window is not the asked one does not start."""
    if got is None:
        raise ServingError(f"server.n_ctx: {asked} asked, but the server does not tell its window")
    if got != asked:
        raise ServingError(f"server.n_ctx: {asked} asked, but the server's window is {got}; set server.n_ctx={got}")


def _start(settings: ServerSettings, run_dir: Path, command: Callable[[int], list[str]]) -> tuple[ServerProcess, int]:
    if settings.port is not None and not _is_free(settings.port):
        raise ServingError(f"server.port: {settings.port} is taken; choose another, or null for a free one")
    for _ in range(PORT_TRIES if settings.port is None else 1):
        port = settings.port or _free_port()
        process = ServerProcess(command(port), run_dir / "server.log")
        try:
            _wait_ready(process, port, settings)
        except _PortTakenError:
            process.stop()
        except BaseException:
            process.stop()
            raise
        else:
            return process, port
    raise ServingError("server.port: another program took the port before the server could have it; try again")


class _PortTakenError(Exception):
    """Another program got the port between our look and the server's start."""


def _wait_ready(process: ServerProcess, port: int, settings: ServerSettings) -> None:
    end = time.monotonic() + settings.start_timeout_s
    with ChatClient(f"http://{HOST}:{port}") as client:
        while time.monotonic() < end:
            code = process.exit_code()
            if code is not None:
                if _BIND_FAILED.search(process.log_text()):
                    raise _PortTakenError
                if refused := _FLAG_REFUSED.search(process.log_text()):
                    raise ServingError(
                        f"server.binary: this llama-server does not know {refused[1]}; use a newer one, "
                        "or mend server.extra_args"
                    )
                raise ServingError(
                    f"the {settings.kind} server ended while starting (exit code {code}): {process.last_words()}"
                )
            # The log has to say it as well: another program that got the port first might answer there.
            if client.health() == 200 and (not (said := process.log_text()) or "listening" in said):
                return
            time.sleep(0.03)
    raise ServingError(
        f"the {settings.kind} server was not ready after {settings.start_timeout_s:g} s (server.start_timeout_s): "
        f"{process.last_words()}"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as s:
        if os.name == "posix":  # a port whose last connections are only fading out is free
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]
