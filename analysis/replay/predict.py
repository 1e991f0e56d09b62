"""Exact accounting of recorded runs: for every request the reuse that follows from tokens, beside the one the server told.

The slot is rebuilt from the record alone: each prompt as it was sent, and each reply without the token sampled last, as sampled
where the server told its tokens (server.record_tokens), else as the template would write it. The longest common prefix of the
next prompt with that is what a plain prefix cache reuses, at most prompt - 1. Where the server reused another number, the cause
is one of the closed list of accounting.py, and the log line of the request shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.replay.prompts import PromptError, Prompts
from analysis.replay.slot import Slot
from analysis.tables.join import join
from harness.record.accounting import account
from harness.record.conversation import Message
from harness.record.slot import Event, SlotRequest, reached_slot, sampled, token_counts


@dataclass(frozen=True)
class Prediction:
    """One request that reached the slot; tokens. prompt: as the server told; counted: as rebuilt here.

    reply_known: the reply before it, as rebuilt, has exactly as many tokens as the model wrote (True for a first request): where
    it has not, its tokens in the slot are not the rendered ones. cause: why more than nothing was evaluated; difference: why the
    server's reuse is not the predicted one, None where they agree. log: the request's line of the server log in short.
    """

    run: str
    step: int
    attempt: int
    tag: str
    prompt: int | None
    counted: int | None
    reused: int | None
    predicted: int | None
    reply_known: bool
    cause: str | None
    difference: str | None
    log: str | None

    @property
    def agrees(self) -> bool:
        return self.predicted is not None and self.predicted == self.reused


def predictions(
    run: str,
    events: Sequence[Event],
    prompts: Prompts,
    log: Path,
    *,
    checkpoints: bool | None = None,
    cache_reuse: int = 0,
) -> list[Prediction]:
    """One Prediction per request that reached the slot, in order.

    log: the run's server.log; without one `log` is None everywhere. checkpoints: as in accounting.account. cache_reuse: the
    server's setting of that name.
    """
    joined = join(events, log)
    slot = Slot(cache_reuse)
    known = True
    out = []
    for item, tokens in account(events, checkpoints=checkpoints):
        if not reached_slot(item.response):
            continue
        ids = _ids(item, prompts)
        predicted = None if ids is None else slot.take(ids)
        row = joined.pairs.get(item.request["i"])
        found = Prediction(
            run=run,
            step=item.request["step"],
            attempt=item.request["attempt"],
            tag=item.request["tag"],
            prompt=tokens.prompt,
            counted=None if ids is None else len(ids),
            reused=tokens.reused,
            predicted=predicted,
            reply_known=known,
            cause=tokens.cause,
            difference=_difference(tokens.reused, predicted, tokens.prompt, ids, known, checkpoints, row),
            log=None if row is None else _line(row.row),
        )
        out.append(found)
        if ids is None or item.messages is None:
            slot.held = []
            continue
        body, known = _written(item, prompts)
        slot.wrote(body)
    return out


def _ids(item: SlotRequest, prompts: Prompts) -> list[int] | None:
    if item.messages is None:
        return None
    try:
        return prompts.ids(item.messages)
    except PromptError:
        return None


def _written(item: SlotRequest, prompts: Prompts) -> tuple[list[int], bool]:
    """(the reply's tokens that entered the slot, whether they are certainly the model's own)."""
    assert item.response is not None
    assert item.messages is not None
    generated = token_counts(item.response)[2]
    if (told := sampled(item.response)) is not None:
        return list(told[:-1]), True
    message = item.response.get("message")
    if generated is None or message is None:
        return [], False
    body = prompts.body(item.messages, _stored(message))
    if body is None:
        return [], False
    ended = item.response.get("outcome") == "reply"
    return body[: max(0, generated - 1)], len(body) == generated - ended


def _stored(message: dict[str, Any]) -> Message:
    """A response's message as a conversation would hold it; text stays to the letter."""
    out: Message = {"role": "assistant", "content": message.get("content") or ""}
    if message.get("reasoning"):
        out["reasoning_content"] = message["reasoning"]
    calls = message.get("tool_calls") or ()
    if calls:
        out["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls
        ]
    return out


def _difference(
    reused: int | None,
    predicted: int | None,
    prompt: int | None,
    ids: list[int] | None,
    reply_known: bool,
    checkpoints: bool | None,
    row: Any,
) -> str | None:
    """Why prediction and server differ; None where they agree or the server told nothing."""
    if reused is None or predicted == reused:
        return None
    if ids is None or len(ids) != prompt:
        return "template"  # the prompt itself is rendered in a way that can't be rebuilt
    if row is not None and (row.row.forced_full or row.row.restored_checkpoints):
        return "checkpoint"
    if not reply_known:
        return "template"  # the reply stands in the slot as it was sampled, which is not how the template writes it
    if checkpoints and predicted is not None and reused < predicted:
        return "checkpoint"
    return "unexplained"


def _line(row: Any) -> str:
    """The log's words about a request, in short."""
    told = {
        "prompt": row.prompt_tokens,
        "cached": row.cached_tokens,
        "processed": row.processed_tokens,
        "generated": row.generated_tokens,
        "forced full": row.forced_full or None,
        "restored checkpoints": row.restored_checkpoints or None,
    }
    return f"task {row.task}: " + ", ".join(f"{k} {v}" for k, v in told.items() if v is not None)
