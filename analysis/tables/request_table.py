"""requests: one row per chat request of the agent, numbers from the replies, the server log joined beside them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.tables.columns import REQUEST
from analysis.tables.frame import frame
from analysis.tables.join import join
from analysis.tables.records import Record, Source, all_problems, load
from harness.record.accounting import Tokens, account
from harness.record.costs import checkpoints_of
from harness.record.slot import SlotRequest


def requests(source: Source) -> pd.DataFrame:
    """The request table; requests of one run stand in the order they were sent."""
    records = load(source)
    problems = list(all_problems(records))
    rows = [row for record in records.runs for row in _rows(record, problems)]
    return frame(rows, REQUEST, problems)


def _rows(record: Record, problems: list[str]) -> list[dict[str, Any]]:
    accounted = list(account(record.events, checkpoints=checkpoints_of(record.manifest)))
    joined = join(record.events, record.folder.server_log)
    problems += joined.problems
    n_ctx = record.result.get("n_ctx")
    return [
        record.arm | _row(item, tokens, n_ctx) | joined.columns(item.request["i"])
        for item, tokens in accounted
        if item.response is not None
    ]


def _row(item: SlotRequest, tokens: Tokens, n_ctx: int | None) -> dict[str, Any]:
    response = item.response or {}
    timings = response.get("timings") or {}
    known = tokens.prompt is not None and tokens.generated is not None
    total = tokens.prompt + tokens.generated if known else None  # type: ignore[operator]
    return {
        "step": item.request.get("step"),
        "attempt": item.request.get("attempt"),
        "tag": item.request.get("tag"),
        "outcome": response.get("outcome"),
        "cut_kind": response.get("kind") if response.get("outcome") == "cut" else None,
        "status": response.get("status"),
        "finish_reason": response.get("finish_reason"),
        "prompt": tokens.prompt,
        "reused": tokens.reused,
        "evaluated": tokens.evaluated,
        "new": tokens.new,
        "recomputed": tokens.recomputed,
        "generated": tokens.generated,
        "prompt_ms": timings.get("prompt_ms"),
        "predicted_ms": timings.get("predicted_ms"),
        "ms": response.get("ms"),
        "total": total,
        "window_share": total / n_ctx if total is not None and n_ctx else None,
        "after_clear": tokens.after_clear,
        "cut": response.get("outcome") == "cut",
        "dropped": bool(response.get("dropped")),
        "cause": tokens.cause,
        "evaluated_pct": 100 * tokens.evaluated / tokens.prompt
        if tokens.prompt and tokens.evaluated is not None
        else None,
    }
