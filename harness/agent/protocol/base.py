"""How calls travel between the loop and the model.

The conversation keeps assistant calls and tool results in one form (OpenAI's), whatever the protocol. A protocol turns that
list into what is sent (`wire`), says what else the request carries, and reads a reply back into calls. All three are pure.
An assistant message of a text protocol also keeps `raw`, the text as the model wrote it: it is sent back to the letter, so
that the prompt cache still fits, until a context policy has changed the calls; then the calls are rendered anew.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.agent.tools.base import Tool
from harness.record.conversation import Message
from harness.serving.outcome import AssistantMessage, ToolCall


@dataclass(frozen=True)
class ParsedReply:
    """What a reply says. finish: the summary of a `finish` call (constrained). problem: why it could not be read."""

    content: str
    reasoning: str | None
    calls: tuple[ToolCall, ...]
    finish: str | None = None
    problem: str | None = None
    raw: str | None = None

    def stored(self) -> Message:
        """The assistant message that the conversation keeps."""
        message: Message = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.calls
            ]
        if self.raw is not None:
            message["raw"] = self.raw
        return message


@dataclass(frozen=True)
class RequestParts:
    """What a request carries beside the messages."""

    tools: list[dict[str, Any]] | None = None
    response_format: dict[str, Any] | None = None


class CallProtocol(Protocol):
    """finish_tool: the name of the call that declares the task done; None where a reply without a call does."""

    name: str
    finish_tool: str | None

    def instructions(self, tools: Sequence[Tool]) -> str:
        """What the system prompt must say about calling tools; empty where the server's template says it."""
        ...

    def parts(self, tools: Sequence[Tool], banned: Collection[str]) -> RequestParts: ...

    def wire(self, messages: Sequence[Message]) -> list[Message]: ...

    def read(self, message: AssistantMessage) -> ParsedReply: ...


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The calls a stored assistant message holds."""
    return tuple(
        ToolCall(c.get("id", ""), c["function"]["name"], c["function"]["arguments"])
        for c in message.get("tool_calls") or ()
    )


def same_calls(a: Sequence[ToolCall], b: Sequence[ToolCall]) -> bool:
    """True when names and arguments mean the same; ids and spelling do not count."""
    return len(a) == len(b) and all(
        x.name == y.name and _meaning(x.arguments) == _meaning(y.arguments) for x, y in zip(a, b, strict=True)
    )


def _meaning(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
