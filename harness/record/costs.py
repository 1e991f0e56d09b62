"""The run row's tokens and seconds: sums over the per-request accounting, None as soon as one part is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from harness.record.accounting import Tokens, account
from harness.record.slot import Event, SlotRequest, reached_slot

BIG = 0.5


def checkpoints_of(manifest: dict[str, Any]) -> bool | None:
    """Whether the probe found that the served model can only resume at checkpoints; None when it doesn't say."""
    probe = (manifest.get("server") or {}).get("probe") or {}
    found = probe.get("checkpoints")
    return found if isinstance(found, bool) else None


def token_columns(manifest: dict[str, Any], events: Sequence[Event]) -> dict[str, Any]:
    """Sums in tokens over agent and summary requests that reached the slot; a refused request costs nothing."""
    rows = [t for item, t in account(events, checkpoints=checkpoints_of(manifest)) if reached_slot(item.response)]
    evaluated, new = total(t.evaluated for t in rows), total(t.new for t in rows)
    return {
        "prompt_tokens": total(t.prompt for t in rows),
        "reused_tokens": total(t.reused for t in rows),
        "evaluated_tokens": evaluated,
        "new_tokens": new,
        "recomputed_tokens": total(t.recomputed for t in rows),
        "amplification": evaluated / new if evaluated is not None and new else None,
        "generated_tokens": total(t.generated for t in rows),
        **_after_clear(list(account(events))),
    }


def _after_clear(rows: list[tuple[SlotRequest, Tokens]]) -> dict[str, Any]:
    after = [t for item, t in rows if t.after_clear and reached_slot(item.response) and item.request["tag"] == "agent"]
    shares = [t.evaluated / t.prompt for t in after if t.evaluated is not None and t.prompt]
    known = len(shares) == len(after)
    return {
        "post_clear_requests": len(after),
        "post_clear_over_half": sum(s > BIG for s in shares) if known else None,
        "post_clear_min_pct": 100 * min(shares) if known and shares else None,
        "post_clear_median_pct": 100 * median(shares) if known and shares else None,
    }


def time_columns(events: Sequence[Event], kind: str | None) -> dict[str, Any]:
    """Seconds of the whole run, and its four parts that sum to it; `harness` is what the other three leave.

    A double or a tape tells timings that nobody waited for: they don't sum to anything, so harness_seconds is unknown there.

    tool_seconds holds the calls (approval questions included) and the finish checks. A prompt or reply without timings
    leaves prompt_seconds, writing_seconds and harness_seconds unknown.
    """
    seconds = next((e["t"] for e in events if e["event"] == "stop"), None)
    answered = [e.get("timings") or {} for e in events if e["event"] == "response" and reached_slot(e)]
    prompt = total(t.get("prompt_ms") for t in answered)
    writing = total(t.get("predicted_ms") for t in answered)
    # A gate that ran nothing has no time to tell and took none.
    acts = [e for e in events if e["event"] in ("call", "finish_check") and not _ran_nothing(e)]
    tools = total(e.get("ms") for e in acts)
    parts = (prompt, writing, tools)
    known = kind == "real" and seconds is not None and None not in parts
    return {
        "seconds": seconds,
        "prompt_seconds": _seconds(prompt),
        "writing_seconds": _seconds(writing),
        "tool_seconds": _seconds(tools),
        "harness_seconds": round(seconds - sum(p / 1000 for p in parts if p is not None), 4) if known else None,
    }


def _ran_nothing(event: Event) -> bool:
    return event["event"] == "finish_check" and event.get("exit_code") is None and event.get("ms") is None


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else round(ms / 1000, 4)


def total(values: Iterable[float | None]) -> Any:
    """The sum; None as soon as one value is None."""
    found = list(values)
    return None if any(v is None for v in found) else sum(v for v in found if v is not None)
