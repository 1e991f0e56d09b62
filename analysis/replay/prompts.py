"""Message lists as exact prompts: wired, rendered and tokenised, each message and each piece of text once."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.record.conversation import Message
from harness.serving.pieces import PieceTokens

Render = Callable[[list[Message], list[dict[str, Any]] | None], str | None]
Wire = Callable[[Sequence[Message]], list[Message]]
T = TypeVar("T")
SENTINEL = "held"
RECENT = 6


class PromptError(ValueError):
    """A list that the template refuses."""


@dataclass
class Prompts:
    """Prompts of one run: its protocol's wire form, its tools, its model's template and tokenizer."""

    wire: Wire
    tools: list[dict[str, Any]] | None
    render: Render
    pieces: PieceTokens
    _wired: dict[int, tuple[Message, Message]] = field(default_factory=dict)
    _texts: deque[tuple[list[Message], str]] = field(default_factory=lambda: deque(maxlen=RECENT))
    _ids: deque[tuple[list[Message], list[int]]] = field(default_factory=lambda: deque(maxlen=RECENT))
    _closings: dict[str, str] = field(default_factory=dict)

    def ids(self, messages: Sequence[Message]) -> list[int]:
        """The prompt's token ids. Raises PromptError for a list that can't be rendered."""
        ids = _known(self._ids, messages)
        if ids is None:
            ids = self._tokens(self.text(messages))
            self._ids.append((list(messages), ids))
        return ids

    def count(self, messages: Sequence[Message]) -> int:
        return len(self.ids(messages))

    def text(self, messages: Sequence[Message]) -> str:
        """The prompt as the template renders it. Raises PromptError as ids() does."""
        text = _known(self._texts, messages)
        if text is None:
            text = self._rendered(self._sent(messages))
            self._texts.append((list(messages), text))
        return text

    def _rendered(self, sent: list[Message]) -> str:
        text = self.render(sent, self.tools)
        if text is None:
            raise PromptError("the chat template refuses this conversation")
        return text

    def body(self, messages: Sequence[Message], reply: Message) -> list[int] | None:
        """The tokens of a reply as the next prompt will hold them, its turn's closing left out; None where the template
        does not simply append it."""
        before, sent = self.text(messages), self._sent([*messages, reply, _next(reply)])
        after, closing = self._rendered(sent), self._closing(sent[:-2], before, sent[-1])
        if closing is None or not after.startswith(before) or not after.endswith(closing):
            return None
        return self.pieces.body(after[len(before) : len(after) - len(closing)])

    def _closing(self, sent: list[Message], before: str, answer: Message) -> str | None:
        """What the template puts behind a reply, with an answer: a list that ends in a reply would be one to be continued."""
        key = json.dumps(answer)
        if key not in self._closings:
            text = self.render([*sent, {"role": "assistant", "content": SENTINEL}, answer], self.tools)
            if text is None or not text.startswith(before + SENTINEL):
                return None
            self._closings[key] = text[len(before) + len(SENTINEL) :]
        return self._closings[key]

    def _tokens(self, text: str) -> list[int]:
        ids = self.pieces.tokens(text)
        if ids is None:
            raise PromptError("the tokenizer gave no answer")
        return ids

    def _sent(self, messages: Sequence[Message]) -> list[Message]:
        """The wire form; a message's own depends on itself and on the reply that made its call, so each is made once."""
        new = next((i for i, m in enumerate(messages) if id(m) not in self._wired), None)
        if new is not None:
            while new > 0 and messages[new]["role"] != "assistant":
                new -= 1
            part = list(messages[new:])
            for message, sent in zip(part, self.wire(part), strict=True):
                self._wired[id(message)] = (message, sent)
        return [self._wired[id(m)][1] for m in messages]


def _known(recent: deque[tuple[list[Message], T]], messages: Sequence[Message]) -> T | None:
    """What was worked out for this very list of messages a moment ago."""
    for known, made in recent:
        if len(known) == len(messages) and all(a is b for a, b in zip(known, messages, strict=True)):
            return made
    return None


def _next(reply: Message) -> Message:
    """An answer of the kind that a reply gets."""
    calls = reply.get("tool_calls")
    if calls:
        return {"role": "tool", "tool_call_id": calls[0].get("id", ""), "content": SENTINEL}
    return {"role": "user", "content": SENTINEL}
