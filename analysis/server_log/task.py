"""A task while the log still speaks of it, and the row it becomes.

Contract: the parsers write down what a line says; :func:`row_of` alone decides status and derived values, by the rules
of the row format.
"""

from __future__ import annotations

import re

from analysis.server_log.rows import RequestRow, Status

REFUSALS = re.compile(
    r"exceeds the available context size|Failed to parse grammar|Failed to initialize samplers", re.IGNORECASE
)
"""Texts of ``send_error`` that are a 400: the request was refused before anything was processed."""
FAILURES = re.compile(
    r"Context size has been exceeded|Invalid input batch|Compute error|KV cache is full|context shift is disabled"
    r"|too large to process|Failed to parse input|does not match the expected",
    re.IGNORECASE,
)
"""Texts that are a 500: the task had a slot, also where a log that begins in the middle does not say which."""

PROCESS_ENDED = "process ended"

_new_row = tuple.__new__  # what a named tuple's own constructor calls, three times as fast without the names


class Task:
    """What the lines said so far. Defaults live on the class, so a new task costs one small dict."""

    number = b""
    seq = -1
    slot: int | None = None
    launched = False
    is_child: bool | None = None
    printf = False  # era A: the release count has no missing last token

    n_ctx: int | None = None
    prompt: int | None = None
    sized = False  # its prompt-size line was seen
    prompt_cut = False
    reuse: int | None = None  # the first reuse line after the prompt-size line
    reuse_hint: int | None = None  # the last restore, forcing or correction, for logs without reuse lines
    to_process: int | None = None  # era A
    p0: int | None = None  # era B: reuse with the system prompt in it
    system: int | None = None  # era B: size of the system prompt, from the release

    header = False
    processed: int | None = None
    generated: int | None = None
    prompt_ms: float | None = None
    eval_ms: float | None = None
    draft_n: int | None = None
    draft_accepted: int | None = None
    drafted = False

    forced_full = 0
    restored_checkpoints = 0
    context_shifts = 0

    released = False
    release_n: int | None = None
    truncated: bool | None = None
    error: str | None = None
    sent_error = False
    refused_launch = False
    cancelled = False
    process_ended = False
    done = False


def status_of(task: Task) -> Status | None:
    """``None`` for a task still open when its log, or its share of the log, ended."""
    if task.refused_launch:
        return "rejected"
    if task.error is not None:
        refused = task.sent_error and (
            REFUSALS.search(task.error) is not None or (task.slot is None and FAILURES.search(task.error) is None)
        )
        return "rejected" if refused else "failed"
    if task.cancelled and task.processed is None and task.generated is None:
        return "cancelled"
    if task.released:
        return "ok"
    return "failed" if task.process_ended else None


def _printed_reuse(task: Task) -> int | None:
    if task.p0 is not None:
        return task.p0 if task.system == 0 else None
    return task.reuse if task.reuse is not None else task.reuse_hint


def row_of(task: Task, *, instance: str | None, run: int, container: str | None) -> RequestRow:
    """The row of a task nothing more will be said about."""
    status = status_of(task)
    error = task.error
    prompt, count = task.prompt, task.release_n
    processed, generated = task.processed, task.generated
    prompt_d = cached_d = processed_d = generated_d = None
    if status == "rejected":
        cached, processed, generated = None, 0, 0
    else:
        if status == "failed" and error is None:
            error = PROCESS_ENDED
        cached = _printed_reuse(task)
        if prompt is None or cached is None or processed is None or generated is None:
            prompt_d, cached_d, processed_d, generated_d = _derived(task, status, cached)
    return _new_row(
        RequestRow,
        (
            task.slot,
            int(task.number),
            prompt,
            cached,
            processed,
            generated,
            task.prompt_ms,
            task.eval_ms,
            task.truncated,
            status,
            instance,
            count,
            prompt_d,
            cached_d,
            processed_d,
            generated_d,
            task.draft_n,
            task.draft_accepted,
            error,
            run,
            container,
            task.n_ctx,
            task.is_child,
            task.forced_full,
            task.restored_checkpoints,
            task.context_shifts,
            task.prompt_cut,
            task.launched,
        ),
    )


def _derived(task: Task, status: Status | None, cached: int | None) -> tuple[int | None, ...]:
    """Prompt, reuse, processed and generated where arithmetic gives what no line says; ``None`` elsewhere."""
    prompt, count, processed, generated = task.prompt, task.release_n, task.processed, task.generated
    prompt_d = cached_d = processed_d = generated_d = None
    # The cache count at the end says nothing of the prompt once the window was cut, shifted or drafted into.
    exact = count is not None and not (task.truncated or task.context_shifts or task.drafted)
    if cached is None and task.p0 is not None and task.system:
        cached_d = _not_negative(task.p0 - task.system)
    reuse = cached if cached is not None else cached_d
    if reuse is not None:
        evaluated = task.to_process if task.to_process is not None else processed
        if prompt is None and evaluated is not None:
            prompt_d = reuse + evaluated
    elif task.p0 is None:
        if prompt is None and exact and generated is not None:
            prompt_d = count - generated + (0 if task.printf else 1)  # type: ignore[operator]
        size = prompt if prompt is not None else prompt_d
        if size is not None and processed is not None and not (task.truncated or task.prompt_cut):
            cached_d = reuse = _not_negative(size - processed)
            if cached_d is None:
                prompt_d = None
    if status == "ok":
        size = prompt if prompt is not None else prompt_d
        if processed is None and size is not None and reuse is not None and not task.prompt_cut:
            processed_d = _not_negative(size - reuse)
        if generated is None and task.header and exact and size is not None:
            generated_d = _not_negative(count - size + 1)  # type: ignore[operator]
    return prompt_d, cached_d, processed_d, generated_d


def _not_negative(value: int) -> int | None:
    return value if value >= 0 else None
