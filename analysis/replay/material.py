"""A recorded run as material for replays: its head, and turn by turn what the model wrote and what it got back.

What the recorded context policy did is left out: messages stand as they were born. Requests that the server refused are left
out too, because whether one is refused depends on the policy. A reply that the agent threw away (cut) keeps its size and the
notice that followed it; where the recorded window cut it, another policy might have left it room, which a replay can't tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from analysis.replay.errors import ReplayError
from harness.record.conversation import Message
from harness.record.slot import Event, reached_slot, sampled, token_counts


@dataclass(frozen=True)
class Turn:
    """One request that reached the slot and what came of it. Sizes in tokens, as the server told them.

    reply: None when the agent threw it away. generated: what the model wrote, the token that ended it included. answers:
    results and notices after it. calls: the call events. prompt, reused: of the recorded request, under the recorded policy.
    cut: the reply stopped at the window or a limit, so that no end token was written. tokens: the reply as sampled, None where
    the server did not tell them.
    """

    step: int
    reply: Message | None
    generated: int
    answers: tuple[Message, ...]
    calls: tuple[Event, ...]
    prompt: int | None
    reused: int | None
    cut: bool
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Material:
    """n_ctx: the window. max_tokens: the reply limit, None for none. tools: their declarations, None when none was sent."""

    run: str
    kind: str
    protocol: str
    n_ctx: int
    max_tokens: int | None
    tools: list[dict[str, Any]] | None
    head: tuple[Message, ...]
    turns: tuple[Turn, ...]
    labels: dict[str, Any] = field(default_factory=dict)


def material(run: str, kind: str, events: Iterable[Event], labels: dict[str, Any] | None = None) -> Material:
    """Reads a run's events; raises ReplayError for a run without a usable request."""
    rows = list(events)
    start = next((e for e in rows if e["event"] == "start"), None)
    if start is None:
        raise ReplayError(f"run {run}: its events have no start; it can't be replayed")
    head: list[Message] = []
    turns: list[Turn] = []
    for chunk in _chunks(rows):
        if chunk.response is None:
            head += chunk.messages
            continue
        prompt, evaluated, generated = token_counts(chunk.response)
        if generated is None:
            raise ReplayError(f"run {run}: step {chunk.step} has no token counts (a server that tells none); no replay")
        dropped = bool(chunk.response.get("dropped"))
        reply = None if dropped else next((m for m in chunk.messages if m["role"] == "assistant"), None)
        turns.append(
            Turn(
                step=chunk.step,
                reply=reply,
                generated=generated,
                answers=tuple(m for m in chunk.messages if m is not reply),
                calls=tuple(chunk.calls),
                prompt=prompt,
                reused=None if prompt is None or evaluated is None else prompt - evaluated,
                cut=chunk.response.get("outcome") == "cut",
                tokens=sampled(chunk.response),
            )
        )
    if not turns:
        raise ReplayError(f"run {run}: no request of it was answered; there is nothing to replay")
    sent = any(e["event"] == "request" and e.get("tag") == "agent" and e.get("tools") for e in rows)
    tools = start.get("tools") if sent else None
    n_ctx, most = start["n_ctx"], start.get("max_tokens")
    return Material(run, kind, start["protocol"], n_ctx, most, tools, tuple(head), tuple(turns), labels or {})


@dataclass
class _Chunk:
    step: int
    response: Event | None
    messages: list[Message] = field(default_factory=list)
    calls: list[Event] = field(default_factory=list)


def _chunks(rows: list[Event]) -> Iterator[_Chunk]:
    """What stands before the first answered request, then one chunk per answered request."""
    chunk = _Chunk(-1, None)
    for event in rows:
        kind = event["event"]
        if kind == "response" and event.get("tag") == "agent" and reached_slot(event):
            yield chunk
            chunk = _Chunk(event["step"], event)
        elif kind == "message":
            chunk.messages.append(event["message"])
        elif kind == "call":
            chunk.calls.append(event)
    yield chunk
