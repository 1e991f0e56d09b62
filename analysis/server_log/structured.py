"""Era B: ``LEVL [function] message | key=value ...`` and its JSON form, with Ollama's sorted keys and older names.

Contract: :func:`feed` says whether the line was one of this era's request lines. Numbers come from the fields, never
from the message. Values in the text form are JSON-quoted.
"""

from __future__ import annotations

import json
import re

from analysis.server_log.process import Process
from analysis.server_log.task import Task

FIELD = re.compile(
    rb'[ ,{"](id_slot|slot_id|id_task|task_id|p0|n_past|n_system_tokens|n_cache_tokens|truncated|t_prompt_processing'
    rb'|n_prompt_tokens_processed|t_token_generation|n_decoded|error|method|path|status)"?[=:] ?'
    rb'("(?:[^"\\]|\\.)*"|[\w.+-]+)(?=[\s,}]|$)'
)
INTEGER = re.compile(rb"\d{1,18}\Z")
DECIMAL = re.compile(rb"\d{1,18}(?:\.\d+)?(?:[eE][+-]?\d\d?)?\Z")


def feed(process: Process, line: bytes) -> bool:
    """Read a line that may belong to this era."""
    if b"_task" not in line and b"task_id" not in line:
        return False
    fields = dict(FIELD.findall(line))
    number = fields.get(b"id_task", fields.get(b"task_id"))
    if number is None or not INTEGER.match(number):
        return False
    slot = _integer(fields.get(b"id_slot", fields.get(b"slot_id")))
    if b"slot is processing task" in line:
        if slot is not None:
            process.launch(number, slot)
        return True
    if b"task error" in line and b"error" in fields:
        process.send_error(number, _text(fields[b"error"]))
        return True
    task = process.name(number, slot)
    if task is None:
        return True
    if b"kv cache rm [p0" in line:
        if task.p0 is None and task.launched:
            task.p0 = _integer(fields.get(b"p0"))
    elif b"prompt eval time" in line:
        task.header = True
        task.prompt_ms = _decimal(fields.get(b"t_prompt_processing"))
        task.processed = _integer(fields.get(b"n_prompt_tokens_processed"))
    elif b"generation eval time" in line:
        task.header = True
        task.eval_ms = _decimal(fields.get(b"t_token_generation"))
        task.generated = _integer(fields.get(b"n_decoded"))
    elif b"slot released" in line:
        _release(process, task, fields)
    elif b"context shift" in line:
        task.context_shifts += 1
    elif b"input truncated" in line:
        task.prompt_cut = True
    return True


def http(process: Process, line: bytes) -> None:
    """A ``request`` line of this era, or of era A (which printed these, and only these, as JSON)."""
    fields = dict(FIELD.findall(line))
    status = _integer(fields.get(b"status"))
    if status is not None and b"method" in fields and b"path" in fields:
        process.http(_text(fields[b"method"]), _text(fields[b"path"]), status)


def _release(process: Process, task: Task, fields: dict[bytes, bytes]) -> None:
    count, cut = _integer(fields.get(b"n_past")), fields.get(b"truncated")
    if count is None:
        count = _integer(fields.get(b"n_cache_tokens"))
    if count is None or cut not in (b"true", b"false"):
        process.notes.warn("malformed")
        return
    task.system = _integer(fields.get(b"n_system_tokens"))
    process.release(task, count, cut == b"true")


def _integer(value: bytes | None) -> int | None:
    return int(value) if value is not None and INTEGER.match(value) else None


def _decimal(value: bytes | None) -> float | None:
    return float(value) if value is not None and DECIMAL.match(value) else None


def _text(value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    try:
        return str(json.loads(text))
    except ValueError:
        return text
