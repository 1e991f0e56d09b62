"""clears: one row per clear, with what the next request in the slot had to evaluate again because of it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.tables.columns import CLEAR
from analysis.tables.frame import frame
from analysis.tables.records import Record, Source, all_problems, load
from harness.record.accounting import account
from harness.record.costs import checkpoints_of
from harness.record.slot import Event, reached_slot

THRASH = 2


def clears(source: Source) -> pd.DataFrame:
    """The clear table. Of several clears before one request, the last carries that request's numbers."""
    records = load(source)
    rows = [row for record in records.runs for row in _rows(record)]
    return frame(rows, CLEAR, all_problems(records))


def _rows(record: Record) -> list[dict[str, Any]]:
    contexts = [e for e in record.events if e["event"] == "context"]
    following: dict[int, dict[str, Any]] = {}
    sent: list[int] = []
    for item, tokens in account(record.events, checkpoints=checkpoints_of(record.manifest)):
        if not reached_slot(item.response):
            continue
        sent.append(item.request["i"])
        if item.contexts and tokens.prompt and tokens.evaluated is not None:
            following[item.contexts[-1]["i"]] = {
                "recomputed": tokens.recomputed,
                "evaluated": tokens.evaluated,
                "prompt": tokens.prompt,
                "evaluated_pct": 100 * tokens.evaluated / tokens.prompt,
            }
    rows = []
    for number, event in enumerate(contexts):
        after = contexts[number + 1] if number + 1 < len(contexts) else None
        rows.append(record.arm | _row(number, event, after, sent) | _cost(event, following.get(event["i"], {})))
    return rows


def _row(number: int, event: Event, after: Event | None, sent: list[int]) -> dict[str, Any]:
    between = None if after is None else sum(event["i"] < i < after["i"] for i in sent)
    return {
        "clear": number,
        "step": event.get("step"),
        "when": event.get("when"),
        "reason": event.get("reason"),
        "trigger_tokens": event.get("tokens"),
        "cleared": event.get("cleared"),
        "freed_chars": event.get("freed_chars"),
        "freed": event.get("freed_tokens"),
        "steps_to_next": None if after is None else after["step"] - event["step"],
        "thrash": None if between is None else between <= THRASH,
    }


def _cost(event: Event, cost: dict[str, Any]) -> dict[str, Any]:
    freed, recomputed = event.get("freed_tokens"), cost.get("recomputed")
    return cost | {"yield": freed / recomputed if freed is not None and recomputed else None}
