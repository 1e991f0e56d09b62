"""What the server's slot held before each request, as far as the events tell: the ground of all token accounting.

A message is *fresh* for a request when it never was part of a request that reached the slot and is not the model's own
reply. What a `context` event put into the conversation (placeholders, ledger lines, summaries) is never fresh. A request
reached the slot unless it was refused as too large or no answer came: an overflow leaves the slot as it was; after a
failed request the slot's content is not known until the next answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.record.conversation import decode_change

Event = dict[str, Any]
Message = dict[str, Any]
SLOT_TAGS = ("agent", "summary")


@dataclass(frozen=True)
class Held:
    """The slot after an answer. prompt, generated: tokens of the last request in it, None where the reply did not tell."""

    messages: list[Message] | None
    prompt: int | None
    generated: int | None
    tag: str
    dropped: bool

    @property
    def tokens(self) -> int | None:
        """Tokens in the cache: the last sampled one is not in it (the server's own release line says so too)."""
        if self.prompt is None or self.generated is None:
            return None
        return self.prompt + max(self.generated - 1, 0)


@dataclass(frozen=True)
class SlotRequest:
    """One request with its answer and what the slot held before.

    messages: as sent, None where the events don't hold them (a summary request of another making). fresh: how many
    messages at the end were never in the slot, None when fresh and old ones are mixed or the messages are not known.
    held: None before the first answer. held_known: False after a request whose effect on the slot is not known.
    replied, grown: the model's own reply, or any message at all, was appended since the last request that reached the slot.
    contexts: the context events since then.
    """

    request: Event
    response: Event | None
    messages: list[Message] | None
    fresh: int | None
    held: Held | None
    held_known: bool
    replied: bool = False
    grown: bool = True
    contexts: list[Event] = field(default_factory=list)

    @property
    def key(self) -> tuple[Any, Any, Any]:
        return request_key(self.request)


def request_key(event: Event) -> tuple[Any, Any, Any]:
    """What joins request, response and count events: step, attempt, tag."""
    return event.get("step"), event.get("attempt"), event.get("tag")


def reached_slot(response: Event | None) -> bool:
    """Whether the server took the request into its slot: replies and cut replies, the unparsed ones included."""
    return response is not None and response.get("outcome") in ("reply", "cut")


def slot_requests(events: Iterable[Event]) -> Iterator[SlotRequest]:
    """Yields every agent and summary request of a run in order, with its answer (None for one that never came)."""
    rows = list(events)
    answers = _answers(rows)
    messages: list[Message] = []
    fresh: list[bool] = []
    held: Held | None = None
    held_known, replied, grown = True, False, False
    contexts: list[Event] = []
    for event in rows:
        kind = event["event"]
        if kind == "message":
            messages.append(event["message"])
            reply = event["message"].get("role") == "assistant"
            fresh.append(not reply)
            replied, grown = replied or reply, True
        elif kind == "context":
            encoded = event["after"]
            fresh = [fresh[item] if isinstance(item, int) else False for item in encoded]
            messages = decode_change(messages, encoded)
            contexts.append(event)
        elif kind == "request" and event.get("tag") in SLOT_TAGS:
            response = answers.get(event["i"])
            sent, count = _sent(event, messages, fresh)
            yield SlotRequest(event, response, sent, count, held, held_known, replied, grown, contexts)
            if reached_slot(response):
                held = _held(event, response, sent)
                held_known = held.tokens is not None
                fresh = [False] * len(messages)
                replied, grown, contexts = False, False, []
            elif response is None or response.get("outcome") != "overflow":
                held_known = False


def _answers(rows: list[Event]) -> dict[int, Event]:
    """Response events by the number of their request event."""
    waiting: dict[tuple[Any, Any, Any], int] = {}
    answers: dict[int, Event] = {}
    for event in rows:
        if event["event"] == "request":
            waiting[request_key(event)] = event["i"]
        elif event["event"] == "response":
            number = waiting.pop(request_key(event), None)
            if number is not None:
                answers[number] = event
    return answers


def _sent(event: Event, messages: list[Message], fresh: list[bool]) -> tuple[list[Message] | None, int | None]:
    if event.get("messages") is not None:
        sent = list(event["messages"])
        own = len(sent) - len(messages)
        if own >= 0 and sent[: len(messages)] == messages:
            return sent, _trailing(fresh + [True] * own)
        return sent, None
    if event.get("tag") != "agent":
        return None, None
    return list(messages), _trailing(fresh)


def _trailing(fresh: list[bool]) -> int | None:
    """How many are fresh, when all of them stand at the end; else None."""
    count = sum(fresh)
    return count if all(fresh[len(fresh) - count :]) else None


def _held(event: Event, response: Event | None, sent: list[Message] | None) -> Held:
    assert response is not None
    prompt, _, generated = token_counts(response)
    return Held(sent, prompt, generated, event.get("tag", "agent"), bool(response.get("dropped")))


def token_counts(response: Event | None) -> tuple[int | None, int | None, int | None]:
    """(prompt, evaluated, generated) in tokens of one answer; timings first, usage where they are silent."""
    if response is None:
        return None, None, None
    timings = response.get("timings") or {}
    usage = response.get("usage") or {}
    reused, evaluated = timings.get("cache_n"), timings.get("prompt_n")
    prompt = usage.get("prompt_tokens")
    if reused is not None and evaluated is not None:
        prompt = reused + evaluated
    generated = timings.get("predicted_n")
    if generated is None:
        generated = usage.get("completion_tokens")
    return prompt, evaluated, generated


def sampled(response: Event | None) -> tuple[int, ...] | None:
    """The reply's token ids as sampled, None where they were not asked for, not told, or are not as many as were generated."""
    tokens = (response or {}).get("tokens")
    return tuple(tokens) if tokens and len(tokens) == token_counts(response)[2] else None
