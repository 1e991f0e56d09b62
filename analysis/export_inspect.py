"""Run folders -> logs that Inspect's viewer opens: one log per experiment, kind, task and arm; one epoch per run.

`logs` is a pure mapping to plain values in the form of Inspect's own log schema; `export` checks them against that schema and
writes them, and needs inspect-ai (the extra `inspect`), which is imported there and nowhere else.

What has no place of its own in that schema stands in metadata: the whole run row, the marks of a message (cut, cleared at step
n). Clears, refusals, guard marks, finish checks and the stop are info events. Input tokens are the evaluated ones; what came
from the prompt cache is the cache read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from analysis.report.transcript import Block, transcript
from analysis.tables.records import Record, Records, all_problems, folder_for, load, need_runs
from harness.record.slot import Event

TARGET = "all hidden tests pass"
STOPPED = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls"}
EVENTS = ("response", "context", "approval", "guard", "finish_check", "note", "stop")


class ExportError(ValueError):
    """An export that can't be made; one line."""


def export(runs: Path, dest: Path) -> tuple[list[Path], list[str]]:
    """Writes the logs to `dest` and returns (their paths, one line for everything that was left out).

    Raises:
        ExportError: inspect-ai is not installed.
        RecordError: no such folder, no finished run in it, or dest is no folder.
    """
    records = load(runs, short_arms=True)
    need_runs(records, "to export")
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError as e:
        raise ExportError("inspect-ai is not installed; the extra has it: pip install 'called-shot[inspect]'") from e
    folder_for(dest)
    written = []
    for name, document in logs(records).items():
        path = dest / name
        write_eval_log(EvalLog.model_validate(document), str(path))
        written.append(path)
    return written, list(all_problems(records))


def logs(records: Records) -> dict[str, dict[str, Any]]:
    """{file name: log} in the form of Inspect's schema, as plain values."""
    ordered = sorted(records.runs, key=lambda r: (*_group(r), r.row.get("seed") or 0, r.folder.path))
    return dict(_log(list(runs)) for _, runs in groupby(ordered, key=_group))


def _group(record: Record) -> tuple[str, ...]:
    return tuple(str(record.row.get(name)) for name in ("experiment", "kind", "task", "arm"))


def _log(runs: Sequence[Record]) -> tuple[str, dict[str, Any]]:
    experiment, kind, task, arm = _group(runs[0])
    manifest = runs[0].manifest
    name = f"{experiment}/{task}"
    number = hashlib.sha256("\n".join(str(r.row.get("run_id")) for r in runs).encode()).hexdigest()[:22]
    started = min(_started(r) for r in runs)
    ended = max(_ended(r) for r in runs)
    samples = [_sample(run, epoch) for epoch, run in enumerate(runs, 1)]
    model = _model(runs[0])
    document = {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": number,
            "run_id": number,
            "task_id": number,
            "created": _iso(started),
            "task": name,
            "task_display_name": f"{name}: {arm}",
            "task_args": {"arm": arm, "cell": [c for c in manifest.get("cell") or () if not c.startswith("seed=")]},
            "dataset": {"name": task, "samples": 1, "sample_ids": [task], "shuffled": False},
            "model": model,
            "config": {"epochs": len(runs)},
            "tags": [kind, arm],
            "packages": {"called-shot": str((manifest.get("harness") or {}).get("version"))},
            "revision": _revision(manifest),
            "metadata": {k: manifest.get(k) for k in ("settings", "departures", "server", "model", "registration")},
        },
        "results": {"total_samples": len(runs), "completed_samples": len(runs), "scores": _scores(samples)},
        "stats": {
            "started_at": _iso(started),
            "completed_at": _iso(ended),
            "model_usage": {model: _sum([s["model_usage"][model] for s in samples])},
        },
        "samples": samples,
    }
    file = f"{started:%Y-%m-%dT%H-%M-%S}_{_slug(f'{task}-{arm}')}_{number}.eval"
    return file, document


def _sample(record: Record, epoch: int) -> dict[str, Any]:
    row, model = record.row, _model(record)
    start = next((e for e in record.events if e["event"] == "start"), {})
    messages = _messages(record.events)
    usage = {
        "input_tokens": row.get("evaluated_tokens") or 0,
        "input_tokens_cache_read": row.get("reused_tokens"),
        "output_tokens": row.get("generated_tokens") or 0,
        "total_tokens": (row.get("prompt_tokens") or 0) + (row.get("generated_tokens") or 0),
    }
    return {
        "id": str(row.get("task")),
        "epoch": epoch,
        "uuid": f"{row.get('experiment')}-{row.get('run_id')}",
        "input": str(start.get("instruction") or ""),
        "target": TARGET,
        "messages": messages,
        "output": _output(record.events, messages, model) | {"usage": usage},
        "scores": _grades(row),
        "metadata": dict(row),
        "events": _events(record),
        "model_usage": {model: usage},
        "started_at": _iso(_started(record)),
        "completed_at": _iso(_ended(record)),
        "total_time": row.get("seconds"),
    }


def _messages(events: Sequence[Event]) -> list[dict[str, Any]]:
    """All messages as they came, cut replies that the agent dropped included, each with its step and marks."""
    sources = [e for e in events if e["event"] == "message" or _dropped(e)]
    blocks = [b for b in transcript(events) if b.kind != "event"]
    names: dict[str, str] = {}
    found = []
    for number, (event, block) in enumerate(zip(sources, blocks, strict=True)):
        message = event.get("message") or {}
        calls = [_call(c, f"{number}-{i}") for i, c in enumerate(message.get("tool_calls") or ())]
        names |= {c["id"]: c["function"] for c in calls}
        found.append(_message(message, block, event.get("step"), calls, names))
    return found


def _message(
    message: dict[str, Any], block: Block, step: int | None, calls: list[dict[str, Any]], names: dict[str, str]
) -> dict[str, Any]:
    role = message.get("role") or "assistant"
    thinking = message.get("reasoning_content") or message.get("reasoning")
    content: Any = message.get("content") or ""
    if thinking:
        content = [{"type": "reasoning", "reasoning": thinking}, {"type": "text", "text": content}]
    made = {"role": role, "content": content, "metadata": {"step": step, "marks": list(block.marks)}}
    if role == "assistant" and calls:
        made["tool_calls"] = calls
    if role == "tool":
        made |= {"tool_call_id": message.get("tool_call_id"), "function": names.get(str(message.get("tool_call_id")))}
    return made


def _call(call: dict[str, Any], number: str) -> dict[str, Any]:
    """A call of a conversation's message or of a response; arguments that are no JSON object stay as text."""
    function = call.get("function") or call
    text = function.get("arguments") or "{}"
    error = None
    try:
        arguments = json.loads(text)
    except ValueError as e:
        arguments, error = {"text": text}, f"not JSON ({e})"
    if not isinstance(arguments, dict):
        arguments, error = {"text": text}, "not a JSON object"
    name = str(function.get("name") or "")
    return {"id": call.get("id") or number, "function": name, "arguments": arguments, "parse_error": error}


def _output(events: Sequence[Event], messages: Sequence[dict[str, Any]], model: str) -> dict[str, Any]:
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    responses = [e for e in events if e["event"] == "response" and e.get("message")]
    if last is None or not responses:
        return {"model": model, "choices": []}
    reason = STOPPED.get(str(responses[-1].get("finish_reason")), "unknown")
    if responses[-1].get("outcome") == "cut":
        reason = "model_length" if responses[-1].get("kind") == "window" else "max_tokens"
    return {"model": model, "choices": [{"message": last, "stop_reason": reason}]}


def _grades(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores by name; a run that was not graded has none."""
    grades = {}
    passed, total = row.get("hidden_passed"), row.get("hidden_total")
    words = f"{passed} of {total} hidden tests pass; ended: {row.get('ended_how')}"
    if row.get("solved") is not None:
        grades["solved"] = {"value": "C" if row["solved"] else "I", "explanation": words}
    if passed is not None and total:
        grades["hidden_tests"] = {"value": passed / total, "explanation": words}
    if row.get("false_completion") is not None:
        grades["false_completion"] = {"value": int(row["false_completion"])}
    return grades


def _scores(samples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of each score over the runs that have it. No standard error: see the intervals of the report."""
    found = []
    for name in ("solved", "hidden_tests", "false_completion"):
        values = [
            {"C": 1, "I": 0}.get(v, v) for s in samples if (v := (s["scores"].get(name) or {}).get("value")) is not None
        ]
        if values:
            metric = "accuracy" if name == "solved" else "mean"
            metrics = {metric: {"name": metric, "value": sum(values) / len(values)}}
            found.append({"name": name, "scorer": name, "scored_samples": len(values), "metrics": metrics})
    return found


def _events(record: Record) -> list[dict[str, Any]]:
    """What is no message, in words, at the time it happened."""
    found = []
    for event in record.events:
        if event["event"] not in EVENTS or _dropped(event):
            continue
        for block in transcript([event | {"after": []} if event["event"] == "context" else event]):
            if block.kind == "event":
                found.append(
                    {
                        "event": "info",
                        "source": "calledshot",
                        "timestamp": _iso(_started(record) + timedelta(seconds=event["t"])),
                        "working_start": event["t"],
                        "data": {"what": block.title, "text": block.text},
                    }
                )
    return found


def _dropped(event: Event) -> bool:
    return event["event"] == "response" and event.get("outcome") == "cut" and bool(event.get("dropped"))


def _sum(usages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {k: sum(u[k] or 0 for u in usages) for k in usages[0]}


def _revision(manifest: dict[str, Any]) -> dict[str, Any] | None:
    study = manifest.get("study") or {}
    if not study.get("commit"):
        return None
    return {"type": "git", "origin": "", "commit": study["commit"], "dirty": study.get("clean") is False}


def _model(record: Record) -> str:
    return f"calledshot/{record.row.get('model') or 'unknown'}"


def _started(record: Record) -> datetime:
    try:
        moment = datetime.fromisoformat(str(record.manifest.get("started")))
    except ValueError:
        # A record without its time still has an order: by its events' own clock.
        moment = datetime.fromtimestamp(0, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _ended(record: Record) -> datetime:
    return _started(record) + timedelta(seconds=float(record.row.get("seconds") or 0))


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")[:80]
