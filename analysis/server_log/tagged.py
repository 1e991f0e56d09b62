"""Eras C, D and E: ``slot FUNCTION: id I | task T | message``, and the lines of a process without slot.

Contract: :func:`feed` takes lines of one process, without line ends, in order. Function names change between builds,
so messages are matched, never functions. Every line is first cut at ``" | task "``; one regular expression then takes
what every request prints, and a table the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from analysis.server_log import printf, structured
from analysis.server_log.process import Process
from analysis.server_log.task import Task

COMMON = re.compile(
    rb"(\d{1,18}) \| (?:prompt eval time = +(\d{1,15}\.\d+) ms / +(\d{1,18}) tokens"
    rb"|       eval time = +(\d{1,15}\.\d+) ms / +(\d{1,18}) tokens"
    rb"|processing task(?:, is_child = ([01]))?()"
    rb"|stop processing: n_(?:tokens|past) = (\d{1,18}), truncated = ([01])"
    rb"|(?:cached )?n_(?:tokens|past) = (\d{1,18}), memory_seq_rm \[()"
    rb"|new prompt, n_ctx_slot = (\d{1,18}), .*(?:n_prompt_tokens|task\.n_tokens) = (\d{1,18})(?!\d)"
    rb"|      total time = |   graphs reused = )"
)
"""No count of a log has 19 digits: what looks like one is rubbish, and is not read.

The messages every request prints, behind ``| task ``; which one it was is the last group that matched."""
IS_NOTHING, IS_PROMPT, IS_EVAL, IS_LAUNCH, IS_RELEASE, IS_REUSE, IS_SIZE = 1, 3, 5, 7, 9, 11, 13
UNTAGGED_TIMING = re.compile(
    rb"(?<!print: )(?<!timings: )(prompt |\s|^)eval time = +(\d{1,15}\.\d+) ms / +(\d{1,18}) tokens"
)
TOKENIZED = re.compile(rb"prompt tokenized, n_ctx_slot = (\d{1,18}), .*n_prompt_tokens = (\d{1,18})(?!\d)")
AT_LEAST_ONE = re.compile(rb"(?:n_prompt_tokens|task\.n_tokens\(\)) = (\d{1,18})(?!\d)")
CACHE_RM = re.compile(rb"kv cache rm \[(\d{1,18}), end\)")
WAS_SET = re.compile(rb"n_past was set to (\d{1,18})(?!\d)")
CHECKPOINT_PAST = re.compile(rb"n_past = (\d{1,18})(?!\d)")
DRAFT = re.compile(rb"draft acceptance(?: rate)? = +\S+ \( *(\d{1,18}) accepted / *(\d{1,18}) generated\)")

CANCEL = re.compile(rb"cancel task, id_task = (\d{1,18})(?!\d)")
SEND_ERROR = re.compile(rb"send_error: task id = (\d{1,18}), error: (.*)")
NOT_LAUNCHED = re.compile(rb"failed to launch slot with task, id_task = (\d{1,18})(?!\d)")
EXCEPTION = re.compile(rb"got exception: (.*)")
HTTP = re.compile(rb"request: ([A-Z]+) (\S+) \S* ?(\d{3})(?!\d)")
STARTED = re.compile(
    rb"(?:HTTP server listening|server is listening on |server listening at |: listening on |model loaded\b)"
)
BUILD = re.compile(rb"build_info: (b\d+-\w+)|build: (\d+ \(\w+\))|\bbuild\"?[=:](\d+)")


def feed(process: Process, lines: Iterable[bytes]) -> None:
    """Read lines of one process."""
    tasks = process.tasks
    common = COMMON.match
    for line in lines:
        head, tag, rest = line.partition(b" | task ")
        if not tag:
            if line:
                _untagged(process, line)
            continue
        match = common(rest)
        if match is None:
            if rest[:1] != b"-":
                _tagged(process, head, rest)
            continue
        kind = match.lastindex
        if kind == IS_NOTHING:
            continue
        if kind == IS_LAUNCH:
            number, child = match.group(1, 6)
            process.launch_tagged(number, head, None if child is None else child == b"1")
            continue
        number = match[1]
        task = tasks.get(number)
        if task is None or task.slot is None:  # first named by an error or a cancel line, which tell no slot
            task = process.name_tagged(number, head)
            if task is None:
                continue
        if kind == IS_PROMPT:
            task.header = True
            if task.processed is not None:
                process.notes.warn("repeated")
                continue
            ms, count = match.group(2, 3)
            task.prompt_ms = float(ms)
            task.processed = int(count)
        elif kind == IS_EVAL:
            task.header = True
            if task.generated is not None:
                process.notes.warn("repeated")
                continue
            ms, count = match.group(4, 5)
            task.eval_ms = float(ms)
            task.generated = int(count)
        elif kind == IS_RELEASE:
            count, truncated = match.group(8, 9)
            process.release(task, int(count), truncated == b"1")
        elif kind == IS_REUSE:
            # Repeats for every batch; in a log that begins in the middle the first one seen need not be the first.
            if task.reuse is None and (task.launched or task.sized):
                task.reuse = int(match[10])
        else:
            _sized(task, match[12], match[13])


def _tagged(process: Process, head: bytes, rest: bytes) -> None:
    """Any other message about a task."""
    number, tag, message = rest.partition(b" | ")
    if not tag:  # journald drops the trailing blank of a timing header
        number = number.rstrip(b" |")
    task = process.tasks.get(number)
    if task is None or task.slot is None:
        task = process.name_tagged(number, head)
        if task is None:
            return
    handler = HANDLERS.get(message[:7])
    if handler is not None:
        handler(process, task, message)


def _header(process: Process, task: Task, message: bytes) -> None:
    task.header = True
    process.header = task


def _sized(task: Task, window: bytes, prompt: bytes) -> None:
    task.n_ctx, task.prompt, task.reuse, task.sized = int(window), int(prompt), None, True


def _tokenized(process: Process, task: Task, message: bytes) -> None:
    match = TOKENIZED.match(message)
    if match is not None:
        _sized(task, match[1], match[2])


def _removed(process: Process, task: Task, message: bytes) -> None:
    match = CACHE_RM.match(message)
    if match is not None and task.reuse is None and (task.launched or task.sized):
        task.reuse = int(match[1])


def _past(process: Process, task: Task, message: bytes) -> None:
    match = WAS_SET.match(message)
    if match is not None:
        task.reuse_hint = int(match[1])


def _restored(process: Process, task: Task, message: bytes) -> None:
    if message.startswith(b"restored context checkpoint"):
        task.restored_checkpoints += 1
        match = CHECKPOINT_PAST.search(message)
        task.reuse_hint = int(match[1]) if match is not None else None


def _forcing(process: Process, task: Task, message: bytes) -> None:
    if message.startswith(b"forcing full prompt re-processing"):
        task.forced_full += 1
        task.reuse_hint = 0


def _at_least_one(process: Process, task: Task, message: bytes) -> None:
    match = AT_LEAST_ONE.search(message)
    if match is not None and task.prompt is None:
        task.prompt = int(match[1])


def _draft(process: Process, task: Task, message: bytes) -> None:
    match = DRAFT.match(message)
    if match is not None:
        task.drafted = True
        task.draft_accepted, task.draft_n = int(match[1]), int(match[2])


def _accepted(process: Process, task: Task, message: bytes) -> None:
    task.drafted = True


def _shift(process: Process, task: Task, message: bytes) -> None:
    if message.startswith(b"slot context shift"):
        task.context_shifts += 1


def _cut(process: Process, task: Task, message: bytes) -> None:
    if message.startswith(b"input truncated"):
        task.prompt_cut = True


HANDLERS: dict[bytes, Callable[[Process, Task, bytes], None]] = {
    b"": _header,
    b"prompt ": _tokenized,
    b"kv cach": _removed,
    b"n_past ": _past,
    b"restore": _restored,
    b"forcing": _forcing,
    b"need to": _at_least_one,
    b"draft a": _draft,
    b"accepte": _accepted,
    b"slot co": _shift,
    b"input t": _cut,
}
"""By the first seven bytes of a message: no two messages that matter share them without being told apart inside."""


def _untagged(process: Process, line: bytes) -> None:
    if line.endswith(b"all slots are idle"):
        return
    process.lines += 1
    if b"request: " in line and b"got exception: " not in line and b"send_error: " not in line:
        if process.wants_http():
            match = HTTP.search(line)
            if match is not None:
                process.http(match[1].decode(), match[2].decode("utf-8", "replace"), int(match[3]))
    elif b"eval time = " in line and process.header is not None and b"print_timings" not in line:
        _timing(process, process.header, line)
    elif b"cancel task, id_task" in line:
        match = CANCEL.search(line)
        if match is not None:
            process.cancel(match[1])
    elif b"send_error: task" in line:
        match = SEND_ERROR.search(line)
        if match is not None:
            process.send_error(match[1], match[2].decode("utf-8", "replace").strip())
    elif b"got exception: " in line:
        match = EXCEPTION.search(line)
        if match is not None:
            process.exception(*_error_body(match[1].decode("utf-8", "replace").strip()))
    elif b"failed to launch slot" in line:
        match = NOT_LAUNCHED.search(line)
        if match is not None:
            process.refuse_launch(match[1])
    elif b"draft acceptance" in line:
        match = DRAFT.search(line)
        if match is not None and process.header is not None:
            _draft(process, process.header, match[0])
    elif b" blob data]" in line:
        process.notes.warn("blob")
    elif b"listening" in line or b"model loaded" in line:
        if STARTED.search(line) is not None:
            process.on_start(process)
    elif b'"request"' in line or b"] request " in line:
        structured.http(process, line)
    elif b"build" in line:
        match = BUILD.search(line)
        if match is not None:
            process.notes.event("build", instance=process.instance, text=next(filter(None, match.groups())).decode())
    elif b"task" in line and structured.feed(process, line):
        return
    elif b"slot" in line or b"_timings" in line or b"failed to decode" in line:
        printf.feed(process, line)


def _timing(process: Process, task: Task, line: bytes) -> None:
    match = UNTAGGED_TIMING.search(line)
    if match is None:
        return
    if match[1] == b"prompt ":
        if task.processed is None:
            task.prompt_ms, task.processed = float(match[2]), int(match[3])
            return
    elif task.generated is None:
        task.eval_ms, task.generated = float(match[2]), int(match[3])
        return
    process.notes.warn("orphan")


def _error_body(text: str) -> tuple[int | None, str]:
    """Code and message of an exception's JSON body; the text itself where it is none."""
    try:
        error = json.loads(text)["error"]
        return int(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None, text
