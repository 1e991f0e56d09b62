"""text_json: native calls where the model makes them, else calls found as JSON objects in its text.

Several small coder models write `{"name": …, "arguments": {…}}` in a code fence instead of making a tool call. Such an object
anywhere in the text counts, in order; every other text is prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from harness.agent.protocol.base import ParsedReply, RequestParts, calls_of, same_calls
from harness.agent.protocol.native import SENT
from harness.agent.tools.base import Tool
from harness.record.conversation import Message
from harness.serving.outcome import AssistantMessage, ToolCall

_DECODER = json.JSONDecoder(strict=False)  # models put real line breaks into JSON strings
_FENCE_END = re.compile(r"(```[a-z_]*|<tool_call>)\s*$")


def find_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """The text before the first call, and the calls. Every `{` at which a whole JSON object starts is looked at."""
    calls: list[ToolCall] = []
    before = text
    at = text.find("{")
    while at != -1:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        call = _as_call(value)
        if call is not None:
            if not calls:
                before = _FENCE_END.sub("", text[:at]).rstrip()
            calls.append(call)
        at = text.find("{", end)
    return before, tuple(calls)


def _as_call(value: object) -> ToolCall | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        return ToolCall("", value["name"], arguments)
    if not isinstance(arguments, dict):
        return None
    return ToolCall("", value["name"], json.dumps(arguments, ensure_ascii=False))


def render(content: str, calls: Sequence[ToolCall]) -> str:
    """Prose and calls as such a model would write them."""
    fences = []
    for call in calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = call.arguments
        body = json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False, indent=2)
        fences.append(f"```json\n{body}\n```")
    return "\n\n".join([content, *fences] if content else fences)


class TextJson:
    name = "text_json"
    finish_tool = None

    def instructions(self, tools: Sequence[Tool]) -> str:
        return ""

    def parts(self, tools: Sequence[Tool], banned: Collection[str]) -> RequestParts:
        return RequestParts(tools=[t.declaration() for t in tools])

    def wire(self, messages: Sequence[Message]) -> list[Message]:
        return [self._sent(m) for m in messages]

    def read(self, message: AssistantMessage) -> ParsedReply:
        if message.tool_calls:
            return ParsedReply(message.content or "", message.reasoning, message.tool_calls)
        text = message.content or ""
        before, calls = find_calls(text)
        if not calls:
            return ParsedReply(text, message.reasoning, ())
        return ParsedReply(before, message.reasoning, calls, raw=text)

    def _sent(self, message: Message) -> Message:
        raw = message.get("raw")
        if raw is None:
            return {k: message[k] for k in SENT if k in message}
        calls = calls_of(message)
        text = raw if same_calls(find_calls(raw)[1], calls) else render(message.get("content") or "", calls)
        return {k: v for k, v in message.items() if k in SENT and k != "tool_calls"} | {"content": text}
