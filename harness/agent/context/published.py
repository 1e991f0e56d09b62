"""The articles' clearing (published/rules.md section 5): after a reply above half the window, keep the newest 2 results.

The check comes after the reply, so a request may go out although the window is over half full, and it can't help when the
reply itself fills the window. That is how it was published, and it stays so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from harness.agent.context.base import ContextChange, ContextState, When
from harness.agent.context.size import Sizer
from harness.agent.context.trigger import limit
from harness.record.conversation import Message

CLEARED_MARK = "[cleared"
BODIES = ("content", "old", "new")


def result_placeholder(text: str) -> str:
    return f"[cleared to save context: {len(text)} characters. Call the tool again if you need it.]"


def body_placeholder(text: str) -> str:
    return f"[cleared: {len(text)} characters]"


def clear(messages: Sequence[Message], keep: int) -> tuple[list[Message], int]:
    """The list with everything before the `keep`-newest tool result cleared, and how many messages changed.

    A mere respelling of the arguments by the re-serialising counts as a change, as in the published code.
    """
    results = [i for i, m in enumerate(messages) if m["role"] == "tool"]
    if len(results) <= keep:
        return list(messages), 0
    border = results[-keep] if keep else len(messages)
    after = [_cleared(m) for m in messages[:border]] + list(messages[border:])
    return after, sum(a != b for a, b in zip(messages, after, strict=True))


def _cleared(message: Message) -> Message:
    if message["role"] == "tool":
        text = message["content"] or ""
        return message if text.startswith(CLEARED_MARK) else message | {"content": result_placeholder(text)}
    if message["role"] != "assistant":
        return message
    out = {k: v for k, v in message.items() if k != "reasoning_content"}
    if message.get("tool_calls"):
        out["tool_calls"] = [
            c | {"function": c["function"] | {"arguments": _cleared_arguments(c["function"]["arguments"])}}
            for c in message["tool_calls"]
        ]
    return out


def _cleared_arguments(raw: str) -> str:
    """Whatever JSON they are is respelled, an object or not; what can't be read, endless nesting included, stays."""
    try:
        arguments = json.loads(raw)
        if isinstance(arguments, dict):
            bodies = {k: v for k, v in arguments.items() if k in BODIES and isinstance(v, str)}
            arguments |= {k: body_placeholder(v) for k, v in bodies.items() if not v.startswith(CLEARED_MARK)}
        return json.dumps(arguments)
    except (ValueError, RecursionError):
        return raw


@dataclass(frozen=True)
class Published:
    """trigger: the fraction of the window above which a reply's total tokens lead to a clear."""

    trigger: float = 0.5
    keep: int = 2
    name: str = "published"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        if when == "before_send":
            return None
        if when == "after_reply":
            if state.total_tokens is None or state.total_tokens <= self.trigger * state.n_ctx:
                return None
            reason = f"{state.total_tokens} tokens are over {self.trigger:g} of the window of {state.n_ctx}"
        else:
            reason = f"the request was larger than the window of {state.n_ctx}"
        messages, cleared = clear(state.messages, self.keep)
        return ContextChange(messages, cleared, reason)


@dataclass(frozen=True)
class PublishedBeforeSend:
    """The same clearing, but the check looks at the request that is about to go out. trigger: see trigger.limit."""

    trigger: float = 0.5
    keep: int = 2
    name: str = "published_before_send"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        if when == "after_reply":
            return None
        sizer = Sizer(state)
        size, most = sizer.tokens(state.messages), limit(self.trigger, state)
        if when == "before_send" and size <= most:
            return None
        messages, cleared = clear(state.messages, self.keep)
        reason = f"{size} tokens are over {most}" if when == "before_send" else "the server refused the request"
        return ContextChange(messages, cleared, reason, {"size": size, "size_is": sizer.how, "limit": most})
