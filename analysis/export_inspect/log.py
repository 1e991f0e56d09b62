"""Records -> Inspect's logs as plain values: which runs make one log, their samples, scores and usage.

What has no place of its own in that schema stands in metadata: the whole run row, the marks of a message (cut, cleared at step
n). Input tokens are the evaluated ones; what came from the prompt cache is the cache read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from analysis.export_inspect.events import events_of, stop_reason_of
from analysis.export_inspect.messages import calls_of, message_of
from analysis.report.transcript import transcript
from analysis.tables.records import Record, Records
from harness.record.slot import Event

TARGET = "all hidden tests pass"


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
    # Of what stays the same when more seeds come: a second export to the same folder replaces the log.
    same = (experiment, kind, task, str(runs[0].result.get("arm")))
    number = hashlib.sha256("\n".join(same).encode()).hexdigest()[:22]
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
        "events": events_of(record.events, model, _started(record)),
        "model_usage": {model: usage},
        "started_at": _iso(_started(record)),
        "completed_at": _iso(_ended(record)),
        "total_time": row.get("seconds"),
        "limit": _limit(record, start),
    }


def _limit(record: Record, start: Event) -> dict[str, Any] | None:
    """The limit that ended the run, where one did: the window or the number of steps."""
    settings = record.manifest.get("settings") or {}
    steps = (settings.get("agent") or {}).get("max_steps")
    limits = {"context_exhausted": ("context", start.get("n_ctx")), "step_limit": ("turn", steps)}
    kind, limit = limits.get(str(record.row.get("stop_reason")), (None, None))
    return None if limit is None else {"type": kind, "limit": limit}


def _messages(events: Sequence[Event]) -> list[dict[str, Any]]:
    """All messages as they came, cut replies that the agent dropped included, each with its step and marks."""
    sources = [e for e in events if e["event"] == "message" or _dropped(e)]
    blocks = [b for b in transcript(events) if b.kind != "event"]
    names: dict[str, str] = {}
    found = []
    for number, (event, block) in enumerate(zip(sources, blocks, strict=True)):
        message = event.get("message") or {}
        calls = calls_of(message, str(number))
        names |= {c["id"]: c["function"] for c in calls}
        facts = {"step": event.get("step"), "marks": "; ".join(block.marks)}
        metadata = {k: v for k, v in facts.items() if v not in (None, "")}
        found.append(message_of(message, functions=names, calls=calls, metadata=metadata))
    return found


def _output(events: Sequence[Event], messages: Sequence[dict[str, Any]], model: str) -> dict[str, Any]:
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    responses = [e for e in events if e["event"] == "response" and e.get("message")]
    if last is None or not responses:
        return {"model": model, "choices": []}
    return {"model": model, "choices": [{"message": last, "stop_reason": stop_reason_of(responses[-1])}]}


def _grades(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Scores by name; a run that was not graded has none."""
    grades = {}
    passed, total = row.get("hidden_passed"), row.get("hidden_total")
    words = f"{passed} of {total} hidden tests pass; ended: {row.get('ended_how')}"
    if row.get("solved") is not None:
        grades["solved"] = {
            "value": "C" if row["solved"] else "I",
            "answer": f"{row.get('ended_how')}, {passed} of {total}",
            "explanation": words,
        }
    if passed is not None and total:
        grades["hidden_tests"] = {"value": passed / total, "explanation": words}
    if row.get("false_completion") is not None:
        grades["false_completion"] = {
            "value": int(row["false_completion"]),
            "explanation": "declared done and not solved",
        }
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
