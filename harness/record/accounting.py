"""Per-request token accounting: prompt = reused + evaluated, evaluated = new + recomputed, nothing negative, nothing clamped.

`new` is what was evaluated of content that this run's slot never held, as prompt or as the model's own reply; the rest is
`recomputed`, with a cause. How it follows, with P the prompt, G the tokens generated, k this request and h the one before
it in the slot:

1. Nothing held before (the run's first request): all content is new, new = evaluated. cause `cold`.
2. Every message was in the slot before (the same request again): new = 0; what is evaluated is the one token that always
   is, or more after a loss.
3. The slot held P_h + G_h - 1 tokens (the last sampled token never enters the cache). When all of them were reused, what
   is evaluated lies behind everything held, so new = evaluated. This is the ideal append; its amplification is 1.
4. Otherwise (a clear, a dropped reply, a reply rendered differently, a lost cache) the split needs one number that the reply
   doesn't carry: `old`, the tokens at the front of this prompt that belong to content held before, from a `count` event
   (counting.py). Reuse is a prefix, so new = P - max(reused, old): fresh content stands at the end, and a prefix match may
   reach into it by chance. Where the counted prompt is not the served one, or there is no count event, new is None.
5. Mixed orders and summary requests whose messages are not recorded: None, unless case 1 or 3 decides.

None = not known; it is never replaced by 0. The cause names why more than nothing was evaluated:
`cold`; `summary` (the request is one, or follows one); `clear` (a context event changed messages since the last request);
`cut_retry` (the last reply was thrown away); `append` (all held tokens were reused, or all but the reply's); `template` (the
conversation only grew, yet the reply or an earlier message renders differently); `checkpoint` (less was reused than the two
prompts share, on a server that can only resume at checkpoints); `unexplained` (less was reused than they share, and nothing
says why; or what was held is not known): the alarm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.record.slot import Event, Held, SlotRequest, request_key, slot_requests, token_counts

CAUSES = ("cold", "append", "clear", "summary", "cut_retry", "template", "checkpoint", "unexplained")


@dataclass(frozen=True)
class Tokens:
    """One request's tokens; None where not known. after_clear: it is the first to reach the slot after a clear."""

    prompt: int | None
    reused: int | None
    evaluated: int | None
    new: int | None
    recomputed: int | None
    generated: int | None
    cause: str | None
    after_clear: bool


def account(events: Iterable[Event], *, checkpoints: bool | None = None) -> Iterator[tuple[SlotRequest, Tokens]]:
    """Yields every agent and summary request with its tokens.

    checkpoints: whether the served model can only resume at checkpoints (hybrid, recurrent, sliding window); None: unknown.
    """
    rows = list(events)
    counts = {request_key(e): e for e in rows if e["event"] == "count"}
    for item in slot_requests(rows):
        yield item, _tokens(item, counts.get(item.key), checkpoints)


def cleared(item: SlotRequest) -> bool:
    """Whether a clear changed at least one message since the last request that reached the slot."""
    return any(c.get("cleared") for c in item.contexts)


def _tokens(item: SlotRequest, count: Event | None, checkpoints: bool | None) -> Tokens:
    prompt, evaluated, generated = token_counts(item.response)
    reused = None if prompt is None or evaluated is None else prompt - evaluated
    if prompt is None or evaluated is None or reused is None:
        return Tokens(prompt, None, evaluated, None, None, generated, None, cleared(item))
    counted = count if count is not None and count.get("prompt") == prompt else None
    new = _new(item, prompt, reused, counted)
    recomputed = None if new is None else evaluated - new
    cause = _cause(item, prompt, reused, counted, checkpoints)
    return Tokens(prompt, reused, evaluated, new, recomputed, generated, cause, cleared(item))


def _new(item: SlotRequest, prompt: int, reused: int, counted: Event | None) -> int | None:
    if item.held is None:
        return prompt - reused
    if item.fresh == 0 and not item.grown:
        return 0
    if item.held_known and item.held.tokens is not None and reused >= item.held.tokens:
        return prompt - reused
    if counted is not None and counted.get("old") is not None:
        return prompt - max(reused, counted["old"])
    return None


def _cause(item: SlotRequest, prompt: int, reused: int, counted: Event | None, checkpoints: bool | None) -> str:
    if item.held is None:
        return "cold"
    common = counted.get("common") if counted is not None else None
    if common is not None and item.held_known and reused < min(common, prompt - 1):
        return "checkpoint" if checkpoints else "unexplained"
    held = item.held
    if item.request.get("tag") == "summary" or held.tag == "summary":
        return "summary"
    if cleared(item):
        return "summary" if any(_summarised(c) for c in item.contexts) else "clear"
    if held.dropped:
        return "cut_retry"
    if not item.held_known or held.tokens is None or held.prompt is None:
        return "append" if common is not None else "unexplained"
    if reused >= min(held.tokens, prompt - 1):
        return "append"
    if common is not None or reused >= held.prompt:
        return "template"
    return _lost(held, item, checkpoints)


def _lost(held: Held, item: SlotRequest, checkpoints: bool | None) -> str:
    """Part of the old prompt was lost although the conversation only grew, and no count says what the prompts share."""
    if checkpoints:
        return "checkpoint"
    thinking = any(m.get("reasoning_content") for m in held.messages or [])
    return "template" if thinking and item.request.get("tag") == "agent" else "unexplained"


def _summarised(context: dict[str, Any]) -> bool:
    return context.get("policy") == "summarise"
