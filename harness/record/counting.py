"""Counts, with the served model's own template and tokenizer, what the token accounting can't know from replies alone.

Per request three numbers: `prompt`, the tokens of the whole rendered prompt (must equal the size the server reported, else
the row is not used); `old`, the tokens at its front that belong to content the slot held before (see slot.py), the closing
tokens of the last reply not among them: the last sampled token never enters the cache; and `common`, the tokens this
prompt shares from the front with the prompt that the slot took before it, which is what any prefix cache must have reused.

How `old` is found: the last old message is rendered once more with a sentinel as its content. What follows the sentinel
must be the end of the real prompt too; it is that turn's closing and all that is fresh. When the last old message is the
reply to the last request, the boundary is there. Otherwise its closing was in the slot as well: the old messages are rendered
alone, and what both have in common behind the sentinel belongs to the front. (Comparing whole renderings would not do:
templates drop thinking from older turns as soon as a new user message comes.) The parts before and behind the boundary must
tokenise to exactly the whole; where they don't, the boundary lies inside a token and `old` is None. Nothing here touches the
slot: rendering and tokenising are separate endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from harness.record.slot import Event, Message, SlotRequest, reached_slot, slot_requests

Render = Callable[[list[Message], list[dict[str, Any]] | None], str | None]
Wire = Callable[[list[Message]], list[Message]]
SENTINEL = "what was held"


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
        if item.fresh == 0 and not item.grown:
            return len(tokens)
        boundary = self._boundary(sent, split, item, text)
        if boundary is None:
            return None
        front = self._tokenize(text[:boundary], add_special=True)
        back = self._tokenize(text[boundary:], add_special=False)
        if front is None or back is None or len(front) + len(back) != len(tokens):
            return None
        return len(front)

    def _boundary(self, sent: list[Message], split: int, item: SlotRequest, text: str) -> int | None:
        """How many characters of the prompt's text belong to content held before."""
        last = sent[split - 1]
        marked = {"role": last["role"], "content": SENTINEL} if _is_reply(last) else last | {"content": SENTINEL}
        tail = self._behind(marked, sent[: split - 1], sent[split:], item)
        if tail is None or not text.endswith(tail):
            return None
        end = len(text) - len(tail)
        if _is_reply(last) and item.replied:
            return end
        alone = self._behind(marked, sent[: split - 1], [], item)
        # A server that takes a last reply for the beginning of the next one leaves its closing out, so it can't be told.
        return None if not alone else end + shared(tail, alone)

    def _behind(self, marked: Message, before: list[Message], after: list[Message], item: SlotRequest) -> str | None:
        """What the rendering holds behind the sentinel."""
        rendered = self._render([*before, marked, *after], self._sent_tools(item))
        if rendered is None or SENTINEL not in rendered:
            return None
        return rendered[rendered.rindex(SENTINEL) + len(SENTINEL) :]

    def _sent_tools(self, item: SlotRequest) -> list[dict[str, Any]] | None:
        return (item.request.get("schemas") or self._tools) if item.request.get("tools") else None


def _is_reply(message: Message) -> bool:
    return message.get("role") == "assistant"
