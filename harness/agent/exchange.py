"""One request's outcome as the record keeps it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from harness.serving.outcome import Cut, Outcome, Overflow, ServerError


def describe(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the fields of a `response` event."""
    kind = outcome.kind if isinstance(outcome, (Cut, ServerError)) else None
    name = {"Reply": "reply", "Cut": "cut", "Overflow": "overflow", "ServerError": "server_error"}[
        type(outcome).__name__
    ]
    fields: dict[str, Any] = {"outcome": name, "kind": kind, "status": outcome.status, "ms": round(outcome.ms, 3)}
    if isinstance(outcome, (Overflow, ServerError)):
        sizes = (outcome.prompt_tokens, outcome.n_ctx) if isinstance(outcome, Overflow) else (None, None)
        return (
            fields
            | dict.fromkeys(("finish_reason", "message", "usage", "timings", "tokens"))
            | {
                "error": outcome.error,
                "n_prompt": sizes[0],
                "n_ctx": sizes[1],
            }
        )
    return fields | {
        "finish_reason": outcome.finish_reason,
        "message": None if outcome.message is None else asdict(outcome.message),
        "usage": None if outcome.usage is None else asdict(outcome.usage),
        "timings": None if outcome.timings is None else asdict(outcome.timings),
        "tokens": None if outcome.tokens is None else list(outcome.tokens),
        "error": outcome.error if isinstance(outcome, Cut) else None,
        "n_prompt": None,
        "n_ctx": None,
    }


def with_own_ids(step: int, outcome: Outcome) -> Outcome:
    """The outcome with the server's random call ids replaced by ours, which are the same in every equal run."""
    if isinstance(outcome, (Overflow, ServerError)) or outcome.message is None:
        return outcome
    calls = tuple(replace(c, id=f"call_{step}_{i}") for i, c in enumerate(outcome.message.tool_calls))
    return replace(outcome, message=replace(outcome.message, tool_calls=calls))
