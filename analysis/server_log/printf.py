"""Era A: plain printf lines that name a slot, and timings that name nothing.

Contract: a timing block waits in ``process.loose`` for the release line after it; which slot it belongs to follows
from the counts (reused + processed + generated = tokens in the cache), and from the order only where one block waits.
"""

from __future__ import annotations

import re

from analysis.server_log.process import Process
from analysis.server_log.task import Task

LAUNCH = re.compile(rb"slot +(\d{1,9}) is processing \[task id: (\d{1,18})\]")
IN_CACHE = re.compile(rb"slot +(\d{1,9}) [:-] in cache: (\d{1,18}) tokens \| to process: (\d{1,18}) tokens")
RELEASED = re.compile(rb"slot +(\d{1,9}) released \((\d{1,18}) tokens in cache\)")
SHIFT = re.compile(rb"slot +(\d{1,9}) ?: context shift")
TIMING = re.compile(
    rb"(?<![\w])print_timings: +(prompt )?eval time = +(\d{1,15}\.\d+) ms / +(\d{1,18}) (?:tokens|runs)"
)


def feed(process: Process, line: bytes) -> None:
    """Read a line that may belong to this era."""
    if b"is processing [" in line:
        match = LAUNCH.search(line)
        if match is not None:
            process.launch(match[2], int(match[1]), printf=True)
    elif b"in cache: " in line:
        match = IN_CACHE.search(line)
        if match is not None:
            task = process.on_slot.get(int(match[1]))
            if task is not None and not task.done:
                task.reuse, task.to_process = int(match[2]), int(match[3])
    elif b"_timings: " in line:
        match = TIMING.search(line)
        if match is not None:
            _timing(process, match[1] is not None, float(match[2]), int(match[3]))
    elif b" released (" in line:
        match = RELEASED.search(line)
        if match is not None:
            _released(process, int(match[1]), int(match[2]))
    elif b"context shift" in line:
        match = SHIFT.search(line)
        task = process.on_slot.get(int(match[1])) if match is not None else None
        if task is not None and not task.done:
            task.context_shifts += 1
    elif b"update_slots : failed to decode the batch" in line:
        process.ended()


def _timing(process: Process, prompt: bool, ms: float, count: int) -> None:
    if prompt:
        process.loose.append({"prompt_ms": ms, "processed": count})
    elif process.loose and "generated" not in process.loose[-1]:
        process.loose[-1].update(eval_ms=ms, generated=count)
    else:
        process.loose.append({"eval_ms": ms, "generated": count})


def _released(process: Process, slot: int, count: int) -> None:
    task = process.on_slot.get(slot)
    if task is None or task.done:
        process.notes.warn("orphan")
        return
    block = next((block for block in process.loose if _fits(block, task, count)), None)
    if block is None and len(process.loose) == 1 and _possible(process.loose[0], task):
        block = process.loose[0]
    if block is not None:
        process.loose.remove(block)
        for name, value in block.items():
            setattr(task, name, value)
    process.release(task, count, None)


def _possible(block: dict[str, float], task: Task) -> bool:
    return task.to_process is None or block.get("processed", task.to_process) == task.to_process


def _fits(block: dict[str, float], task: Task, count: int) -> bool:
    if "processed" not in block or "generated" not in block or not _possible(block, task):
        return False
    return (task.reuse or 0) + block["processed"] + block["generated"] == count
