"""Counts, with the served model's own template and tokenizer, what the token accounting can't know from replies alone.

Per request three numbers: `prompt`, the tokens of the whole rendered prompt (must equal the size the server reported, else
the row is not used); `old`, the tokens at its front that belong to content the slot held before (see slot.py), the closing
tokens of the last reply not among them: the last sampled token never enters the cache; and `common`, the tokens this
prompt shares from the front with the prompt that the slot took before it, which is what any prefix cache must have reused.

How `old` is found, with R(m) the rendering of messages m:
- the last old message is a reply: replace it by a sentinel and render again; what the two renderings share at the *end* is
  the closing of that turn and all that is fresh. Two sentinels with different ends, and the shorter share, so that a reply
  that ends like a sentinel can't move the boundary.
- otherwise: what R(all) and R(old messages) share at the *front*, in tokens.
The parts before and after a text boundary must tokenise to exactly the whole; where they don't, the boundary lies inside
a token and `old` is None. Nothing here touches the slot: rendering and tokenising are separate endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from harness.record.slot import Event, Message, SlotRequest, reached_slot, slot_requests

Render = Callable[[list[Message], list[dict[str, Any]] | None], str | None]
Wire = Callable[[list[Message]], list[Message]]
SENTINELS = ("held a", "held b")


class Tokenize(Protocol):
    """The tokens of a text, special tokens in it read as such; None where the server can't."""

    def __call__(self, text: str, *, add_special: bool) -> list[int] | None: ...


def shared(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Length of the longest common prefix."""
    shorter = min(len(a), len(b))
    return next((i for i in range(shorter) if a[i] != b[i]), shorter)


def count_requests(
    events: Iterable[Event], render: Render, tokenize: Tokenize, wire: Wire = list
) -> Iterator[dict[str, Any]]:
    """Yields the fields of one `count` event for every request that reached the slot and can be rendered.

    wire: turns the conversation's messages into the messages sent, one for one (the call protocol's part).
    """
    rows = list(events)
    start = next((e for e in rows if e["event"] == "start"), {})
    counter = _Counter(start.get("tools") or None, render, tokenize, wire)
    before: list[int] | None = None
    for item in slot_requests(rows):
        if not reached_slot(item.response):
            continue
        whole = counter.prompt(item)
        if whole is None:
            before = None
            continue
        text, tokens = whole
        step, attempt, tag = item.key
        common = None if before is None else shared(before, tokens)
        old = counter.old(item, text, tokens)
        yield {"step": step, "attempt": attempt, "tag": tag, "prompt": len(tokens), "old": old, "common": common}
        before = tokens


class _Counter:
    def __init__(self, tools: list[dict[str, Any]] | None, render: Render, tokenize: Tokenize, wire: Wire) -> None:
        self._tools = tools
        self._render = render
        self._tokenize = tokenize
        self._wire = wire

    def prompt(self, item: SlotRequest) -> tuple[str, list[int]] | None:
        """The rendered prompt and its tokens."""
        if item.messages is None:
            return None
        text = self._render(self._wire(item.messages), self._sent_tools(item))
        tokens = None if text is None else self._tokenize(text, add_special=True)
        return None if text is None or tokens is None else (text, tokens)

    def old(self, item: SlotRequest, text: str, tokens: list[int]) -> int | None:
        """Tokens at the front that belong to content held before; None where the boundary can't be told."""
        if item.messages is None or item.fresh is None:
            return None
        sent = self._wire(item.messages)
        split = len(sent) - item.fresh
        if len(sent) != len(item.messages):
            return None
        if split == 0:
            return 0
        if item.fresh == 0:
            return len(tokens)
        if sent[split - 1].get("role") != "assistant":
            return self._shared_front(sent[:split], item, tokens)
        return self._before_closing(sent, split, item, text, len(tokens))

    def _shared_front(self, old: list[Message], item: SlotRequest, tokens: list[int]) -> int | None:
        text = self._render(old, self._sent_tools(item))
        shorter = None if text is None else self._tokenize(text, add_special=True)
        return None if shorter is None else shared(shorter, tokens)

    def _before_closing(self, sent: list[Message], split: int, item: SlotRequest, text: str, total: int) -> int | None:
        shares = []
        for sentinel in SENTINELS:
            other = [*sent[: split - 1], {"role": "assistant", "content": sentinel}, *sent[split:]]
            rendered = self._render(other, self._sent_tools(item))
            if rendered is None:
                return None
            shares.append(shared(text[::-1], rendered[::-1]))
        boundary = len(text) - min(shares)
        front = self._tokenize(text[:boundary], add_special=True)
        back = self._tokenize(text[boundary:], add_special=False)
        if front is None or back is None or len(front) + len(back) != total:
            return None
        return len(front)

    def _sent_tools(self, item: SlotRequest) -> list[dict[str, Any]] | None:
        return self._tools if item.request.get("tools") else None
