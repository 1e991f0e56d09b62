"""What a request's message list is, seen from the one before it: the `message` and `context` events that make one from the other.

An agent that only appends gives `message` events. Anything else (an old message changed, shortened or dropped, another
conversation) is one `context` event, policy `external`, followed by `message` events for what is new at the end.
New are messages that no earlier
request held and that don't stand in the place of one that went: a placeholder is no new content. A list that shares nothing with
what was ever sent is a conversation of its own, and all of it is new.
"""

from __future__ import annotations

import json
from typing import Any

from harness.record.conversation import Message, encode_change
from harness.record.events import EventSink

POLICY = "external"


class History:
    """The conversation as the agent sent it last."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._sent: set[str] = set()

    def becomes(self, messages: list[Message], sink: EventSink, step: int) -> None:
        """Emits what makes the conversation `messages`."""
        kept = len(self.messages)
        if messages[:kept] != self.messages:
            kept = self._replaced(messages, sink, step)
        for index, message in enumerate(messages[kept:], kept):
            sink.emit("message", step=step, index=index, message=message)
        self.messages = list(messages)
        self._sent.update(map(_key, messages))

    def _replaced(self, messages: list[Message], sink: EventSink, step: int) -> int:
        """Emits a context event; how many messages it holds."""
        held = self._held(messages)
        after = encode_change(self.messages, messages[:held])
        stayed = {item for item in after if isinstance(item, int)}
        sink.emit(
            "context",
            step=step,
            policy=POLICY,
            reason="the agent sent another history than before",
            when="before_send",
            tokens=None,
            cleared=len(self.messages) - len(stayed),
            freed_chars=_chars(self.messages) - _chars(messages[:held]),
            freed_tokens=None,
            after=after,
            decision={},
        )
        return held

    def _held(self, messages: list[Message]) -> int:
        """How many messages from the front are no new content."""
        last = max((i for i, m in enumerate(messages) if _key(m) in self._sent), default=None)
        if last is None:
            return 0
        stayed = [i for i in encode_change(self.messages, messages) if isinstance(i, int)]
        gone = len(self.messages) - 1 - stayed[-1] if stayed else 0
        end = last + 1
        while end < len(messages) and gone and messages[end].get("role") == self.messages[-gone].get("role"):
            end, gone = end + 1, gone - 1
        return end


def _key(message: Message) -> str:
    return json.dumps(message, sort_keys=True, ensure_ascii=False)


def _chars(messages: list[Any]) -> int:
    return sum(len(json.dumps(m, ensure_ascii=False)) for m in messages)
