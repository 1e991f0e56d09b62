"""One run of an external agent: the door, the proxy behind it, the program in the sandbox, and how it ended.

| what happened | stop reason | declared done |
|---|---|---|
| the time limit ended it | `time_limit` | no |
| it asked for more than `agent.max_steps` requests | `step_limit` | no |
| exit status 0 | `declared_done` | yes |
| another end, and its last request was refused as too large, failed, or could not be parsed | `server_error` | no |
| another end: its exit status, a signal, a limit of the sandbox | `agent_failed` | no |

The first line that fits counts. Whatever the program started ends with it.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.agent.stop import Stop, StopReason
from harness.agent.workspace import CommandResult
from harness.external import program
from harness.external.program import Given
from harness.external.proxy import Proxy
from harness.external.recorder import Recorder
from harness.external.watch import WatchedTree
from harness.external.wire import Upstream
from harness.record.events import EventSink
from harness.serving.running import RunningServer
from harness.settings import ExternalSettings, RunSettings
from harness.workspace.errors import SandboxError
from harness.workspace.sandbox import LocalWorkspace

DOOR, SOCKET = "/opt/door/door.py", "/opt/door/door.sock"
PORT = 8080
OUTPUTS = ("agent_stdout.txt", "agent_stderr.txt")
TASK = "task.md"
# How often an agent may ask on after it was told that its requests are used up.
PATIENCE = 3
SAID_CHARS = 2000


def run_external(
    settings: RunSettings,
    server: RunningServer,
    workspace: LocalWorkspace,
    sink: EventSink,
    *,
    instruction: str,
    n_ctx: int,
    study: Path,
    run_dir: Path,
) -> Stop:
    """Runs an external agent on one copy and returns how it ended; its output is kept in run_dir.

    Args:
        server: the run's server; requests go to its address.
        workspace: opened with the agent's packages, no command run in it yet.
        n_ctx: the window in tokens, as read back from the server.
        study: where the agent's files are looked for.

    Raises:
        SettingsError: a program that can't be started.
        KeyboardInterrupt: after the stop has been written down.
    """
    external = settings.agent.external
    assert external is not None
    assert settings.agent.time_limit_s is not None
    start = {
        "instruction": instruction,
        "protocol": "external",
        "n_ctx": n_ctx,
        "max_tokens": settings.server.max_tokens,
        "seed": settings.seed,
        "agent": settings.agent.name,
        "mount": workspace.mount,
    }
    tree = WatchedTree(workspace.root)
    recorder = Recorder(sink, tree, start, max_steps=settings.agent.max_steps, n_ctx=server.n_ctx)
    upstream = Upstream(server.base_url, server.api_key, server.request_timeout_s)
    with tempfile.TemporaryDirectory(prefix="door") as folder:
        place = Path(folder)
        (place / TASK).write_text(instruction, encoding="utf-8")
        at = _socket_path(place) if workspace.sandboxed else None
        try:
            with Proxy(upstream, recorder, at, timeout_s=server.request_timeout_s) as proxy:
                given = _given(settings, server, workspace, place, instruction, n_ctx, proxy.port)
                with _laid_in(external, workspace, study, place, at) as laid:
                    result = _start(settings, workspace, dataclasses.replace(given, files=laid), recorder)
        except KeyboardInterrupt:
            recorder.finish()
            _end(sink, Stop(StopReason.INTERRUPTED, recorder.steps, "interrupted"))
            raise
    for name, text in zip(OUTPUTS, (result.stdout, result.stderr), strict=True):
        (run_dir / name).write_text(text, encoding="utf-8")
    recorder.finish()
    sink.emit(
        "command",
        step=max(recorder.steps - 1, 0),
        call=None,
        purpose="agent",
        command=external.command,
        **_facts(result),
    )
    return _end(sink, _stop(result, recorder))


def _socket_path(place: Path) -> Path:
    at = place / "s"
    if len(os.fsencode(at)) > 100:
        raise SandboxError(f"{place}: too long a path for a socket; set TMPDIR to a shorter one")
    return at


def _given(
    settings: RunSettings,
    server: RunningServer,
    workspace: LocalWorkspace,
    place: Path,
    instruction: str,
    n_ctx: int,
    port: int | None,
) -> Given:
    root = f"http://127.0.0.1:{port or PORT}"
    return Given(
        task=instruction,
        task_file=f"{program.INSIDE}/{TASK}" if workspace.sandboxed else str(place / TASK),
        workspace=workspace.mount,
        files="",
        base_url=f"{root}/v1",
        root_url=root,
        model=str(server.request_extra.get("model") or settings.model.name),
        seed=settings.seed,
        n_ctx=n_ctx,
        max_tokens=settings.server.max_tokens or 0,
        max_steps=settings.agent.max_steps,
        temperature=settings.agent.temperature,
    )


@contextmanager
def _laid_in(
    external: ExternalSettings, workspace: LocalWorkspace, study: Path, place: Path, at: Path | None
) -> Iterator[str]:
    """Shows the program its files; the folder in which it finds them."""
    own = program.files(external, study)
    if at is None:
        folder = place / "files"
        folder.mkdir()
        for name, path in own.items():
            (folder / name).symlink_to(path)
        yield str(folder)
        return
    shown = {f"{program.INSIDE}/{name}": path for name, path in own.items()}
    shown |= {f"{program.INSIDE}/{TASK}": place / TASK, DOOR: Path(__file__).with_name("door.py"), SOCKET: at}
    workspace.extra += tuple((path, target) for target, path in shown.items())
    yield program.INSIDE


def _start(settings: RunSettings, workspace: LocalWorkspace, given: Given, recorder: Recorder) -> CommandResult:
    external, limit = settings.agent.external, settings.agent.time_limit_s
    assert external is not None
    assert limit is not None
    argv = program.words(external, given)
    if workspace.sandboxed:
        argv = ["python", "-I", "-S", DOOR, SOCKET, str(PORT), *argv]
    return workspace.execute(
        argv,
        timeout_s=limit,
        env=program.environment(external, given),
        until=lambda: "requests" if recorder.refused > PATIENCE else None,
    )[0]


def _facts(result: CommandResult) -> dict[str, Any]:
    return {
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "limit": result.limit,
        "ms": result.ms,
        "output_chars": result.output_chars,
        "truncated": result.truncated,
    }


def _stop(result: CommandResult, recorder: Recorder) -> Stop:
    said = (result.stdout.strip() or result.stderr.strip())[-SAID_CHARS:]
    how = f"exit status {result.exit_code}" if result.exit_code is not None else "ended by the harness"
    detail = how + (f", limit: {result.limit}" if result.limit else "")
    last = recorder.last
    reason, status = StopReason.AGENT_FAILED, None
    if result.timed_out:
        reason = StopReason.TIME_LIMIT
    elif recorder.refused:
        reason = StopReason.STEP_LIMIT
    elif result.exit_code == 0:
        reason = StopReason.DECLARED_DONE
    elif last.get("outcome") in ("overflow", "server_error") or last.get("kind") == "unparsed":
        reason, status = StopReason.SERVER_ERROR, last.get("status")
        detail += f"; the last request: {last.get('error')}"
    return Stop(reason, recorder.steps, said, detail, status)


def _end(sink: EventSink, stop: Stop) -> Stop:
    sink.emit(
        "stop",
        step=max(stop.steps - 1, 0),
        steps=stop.steps,
        reason=stop.reason.value,
        declared_done=stop.declared_done,
        status=stop.status,
        detail=stop.detail,
        text=stop.text,
    )
    return stop
