"""One run, from a plan to a finished run folder. Picklable, starts its own server, leaves no process behind.

Whatever goes wrong before the agent has stopped is written to failed.json and returned as a failure: the next run goes on,
and the folder, having no result.json, is started afresh next time. Ctrl-C passes through.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import traceback
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.agent.protocol import protocol
from harness.agent.run import run_agent
from harness.external.run import run_external
from harness.models import store_settings
from harness.record.counting import count_requests
from harness.record.events import EventSink, EventWriter, read_events
from harness.record.folder import DIFF, GRADING, MANIFEST, RESULT, RunFolder, write_atomically, write_json
from harness.record.summary import summarise
from harness.serving.counting import TokenCounter
from harness.serving.moved_reuse import moved_reuse
from harness.serving.probe import facts
from harness.serving.running import RunningServer
from harness.serving.servers import open_server
from harness.settings import RunSettings
from harness.sweep.manifest import manifest
from harness.sweep.plan import RunPlan, scenario_folders
from harness.workspace.copy import Copy, fresh_copy
from harness.workspace.history import grade_run
from harness.workspace.paths import remove
from harness.workspace.sandbox import open_workspace
from harness.workspace.tracking import TrackedWorkspace
from harness.workspace.tree import diff

FAILED = "failed.json"
COPY = "copy"


@dataclass(frozen=True)
class RunOutcome:
    """result: the flat row of a finished run. failure: one line, when the run could not be finished."""

    run_id: str
    folder: Path
    result: dict[str, Any] | None
    failure: str | None = None
    seconds: float = 0.0


def execute(plan: RunPlan, listener: EventSink | None = None) -> RunOutcome:
    """Runs one cell; a finished one is not run again. listener is told of every event as it is written."""
    folder, started = plan.folder, time.monotonic()
    if folder.finished:
        return RunOutcome(plan.run_id, folder.path, folder.result())
    remove(folder.path / COPY)  # of a run that was cut off
    folder.begin()
    try:
        copy = fresh_copy(plan.task, folder.path / COPY)
        _run(plan, folder, copy, listener)
        result = _finish(plan, folder, copy)
    except Exception as e:
        line = " ".join(str(e).split()) or type(e).__name__
        cause = type(e).__name__
        trace = None if isinstance(e, ValueError) else traceback.format_exc()
        with contextlib.suppress(OSError):  # a full disk must not keep the next run from being tried
            write_json(folder.path / FAILED, {"cause": cause, "error": line, "traceback": trace})
        return RunOutcome(plan.run_id, folder.path, None, f"{cause}: {line}", time.monotonic() - started)
    finally:
        remove(folder.path / COPY)
    return RunOutcome(plan.run_id, folder.path, result, seconds=time.monotonic() - started)


def _run(plan: RunPlan, folder: RunFolder, copy: Copy, listener: EventSink | None) -> None:
    """The agent's part: server, copy, loop; then what only the running server can still tell."""
    settings = plan.settings
    with ExitStack() as stack:
        external = settings.agent.external
        packages = plan.task.packages + (external.packages if external else ())
        workspace = stack.enter_context(open_workspace(copy, settings.sandbox, packages))
        server = stack.enter_context(
            open_server(
                settings.server,
                plan.served,
                folder.path,
                chat_template=settings.model.chat_template,
                scenario_dirs=scenario_folders(plan.study),
                seed=settings.seed,
            )
        )
        probe = known_of(plan, server)
        write_json(folder.path / MANIFEST, manifest(plan, server, probe, workspace.warning))
        events = stack.enter_context(EventWriter(folder.events, listener))
        if workspace.warning is not None:
            _warn(workspace.warning)
            events.emit("note", step=0, kind="no_sandbox", text=workspace.warning)
        n_ctx = server.n_ctx or settings.server.n_ctx
        if external is None:
            run_agent(
                settings,
                server.client(),
                TrackedWorkspace(workspace),
                events,
                instruction=plan.task.instruction,
                n_ctx=n_ctx,
                wants_tests=plan.task.asks_for_tests,
                count=TokenCounter(server.client()),
                probe=probe,
                request_extra=server.request_extra,
            )
        else:
            run_external(
                settings,
                server,
                workspace,
                events,
                instruction=plan.task.instruction,
                n_ctx=n_ctx,
                study=plan.study,
                run_dir=folder.path,
            )
        for row in _counts(folder, server, settings):
            events.emit("count", **row)
        events.emit("resources", **server.peak_memory())


@functools.cache
def _warn(line: str) -> None:
    """Said once in a process, however many runs it makes."""
    print(f"WARNING: {line}", file=sys.stderr, flush=True)


def known_of(plan: RunPlan, server: RunningServer) -> dict[str, Any]:
    """The probe's facts; a policy that needs moved cache to be reused has that tried, on a slot that is emptied again."""
    sha256 = None if plan.model is None else plan.model.sha256
    known = facts(server, sha256, store_settings(plan.study).folder.parent / "probes")
    if plan.settings.context.policy == "kv_shift":
        known["moved_reuse"] = moved_reuse(server)
    return known


def _counts(folder: RunFolder, server: RunningServer, settings: RunSettings) -> Iterable[dict[str, Any]]:
    """Exact token counts by the served tokenizer, asked for after the agent stopped; they never touch the slot.

    Of an external agent the messages are on record as they were sent; no protocol of ours changes them.
    """
    client = server.client()
    wire = protocol(settings.protocol.name).wire if settings.agent.external is None else list
    return count_requests(list(read_events(folder.events)), client.apply_template, client.tokenize, wire)


def _finish(plan: RunPlan, folder: RunFolder, copy: Copy) -> dict[str, Any]:
    """Grading on fresh trees, the diff, and the result, written last."""
    write_atomically(folder.path / DIFF, diff(plan.task, copy.root))
    events = list(read_events(folder.events))
    cache = store_settings(plan.study).folder.parent
    grading = grade_run(plan.task, copy.root, events, plan.settings.sandbox, cache)
    write_json(folder.path / GRADING, grading)
    result = summarise(folder.manifest(), events, grading)
    write_json(folder.path / RESULT, result)
    return result
