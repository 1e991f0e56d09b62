"""How large a message list is: counted where the server can, else the server's last size plus an estimate by characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from harness.agent.context.base import ContextState
from harness.record.conversation import Message

How = Literal["counted", "reported_and_estimated", "estimated"]
CHARS_PER_TOKEN = 3.0  # code and English come to 3.5 to 4.5; too many tokens is the safe side
REMOVED_MARGIN = 1.2
MESSAGE_CHARS = 24  # what a template puts around a message


class Sizer:
    """Sizes of the state's list and of others made from it, in tokens; `how` says where the numbers come from."""

    def __init__(self, state: ContextState) -> None:
        self._count = state.count
        self.how: How = "counted"
        covered = len(state.messages) - state.appended
        self._known = chars(state.messages[:covered]) if state.total_tokens else None
        self._total = state.total_tokens or 0

    def tokens(self, messages: Sequence[Message]) -> int:
        counted = self._count(messages) if self._count is not None else None
        if counted is not None:
            return counted
        self._count = None
        if self._known is None:
            self.how = "estimated"
            return math.ceil(chars(messages) / CHARS_PER_TOKEN)
        self.how = "reported_and_estimated"
        more = chars(messages) - self._known
        # What is appended is taken as many tokens, what is taken out as few: the estimate errs on the large side.
        ratio = CHARS_PER_TOKEN if more > 0 else REMOVED_MARGIN * max(CHARS_PER_TOKEN, self._known / self._total)
        return max(0, self._total + math.ceil(more / ratio))


def chars(messages: Sequence[Message]) -> int:
    """Characters of a list as the protocols send it, give or take their punctuation."""
    return sum(map(_message_chars, messages))


def _message_chars(message: Message) -> int:
    size = MESSAGE_CHARS + len(message.get("reasoning_content") or "")
    if message.get("raw") is not None:
        return size + len(message["raw"])
    calls = message.get("tool_calls") or ()
    return size + len(message.get("content") or "") + sum(_call_chars(c["function"]) for c in calls)


def _call_chars(function: dict[str, str]) -> int:
    return len(function["name"]) + len(function["arguments"]) + MESSAGE_CHARS
