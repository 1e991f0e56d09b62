"""native: OpenAI's tool_calls, as the published agents use them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.agent.protocol.base import ParsedReply, RequestParts
from harness.agent.tools.base import Tool
from harness.record.conversation import Message
from harness.serving.outcome import AssistantMessage

SENT = ("role", "content", "tool_calls", "reasoning_content", "tool_call_id")


class Native:
    name = "native"
    finish_tool = None

    def instructions(self, tools: Sequence[Tool]) -> str:
        return ""

    def parts(self, tools: Sequence[Tool], banned: Collection[str]) -> RequestParts:
        return RequestParts(tools=[t.declaration() for t in tools])

    def wire(self, messages: Sequence[Message]) -> list[Message]:
        return [{k: m[k] for k in SENT if k in m} for m in messages]

    def read(self, message: AssistantMessage) -> ParsedReply:
        return ParsedReply(message.content or "", message.reasoning, message.tool_calls)
