"""constrained: a JSON schema makes every reply one call, a thought first; `finish` is a call too.

The tools stand in the system prompt, because the request carries a schema instead of a tool list. `no_repeat` (the loop's
part) leaves a tool out of the next step's schema; the prompt stays as it is, so the cache still fits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from harness.agent.protocol.base import ParsedReply, RequestParts, calls_of, same_calls
from harness.agent.tools.base import Tool
from harness.record.conversation import Message
from harness.serving.outcome import AssistantMessage, ToolCall

FINISH = "finish"
_SUMMARY = {"summary": {"type": "string", "description": "what was done, in a sentence or two"}}
_DECODER = json.JSONDecoder(strict=False)


def _call_schema(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"thought": {"type": "string"}, "tool": {"const": name}, "arguments": arguments},
        "required": ["thought", "tool", "arguments"],
        "additionalProperties": False,
    }


def reply_schema(tools: Sequence[Tool], banned: Collection[str]) -> dict[str, Any]:
    """One alternative per tool that is not banned, and one for `finish`; never empty."""
    forms = {t.name: t.schema() | {"additionalProperties": False} for t in tools}
    forms[FINISH] = {"type": "object", "properties": _SUMMARY, "required": ["summary"], "additionalProperties": False}
    allowed = {n: f for n, f in forms.items() if n not in banned} or forms
    return {"anyOf": [_call_schema(name, form) for name, form in allowed.items()]}


class Constrained:
    name = "constrained"
    finish_tool = FINISH

    def instructions(self, tools: Sequence[Tool]) -> str:
        lines = [f"- {t.name}({', '.join(t.parameters)}): {t.description}" for t in tools]
        lines.append(f"- {FINISH}(summary): Say that the task is done.")
        return (
            "Every reply is one JSON object with the keys thought (a short plan for this one step), tool and arguments.\n"
            "Tools:\n" + "\n".join(lines)
        )

    def parts(self, tools: Sequence[Tool], banned: Collection[str]) -> RequestParts:
        schema = {"name": "step", "strict": True, "schema": reply_schema(tools, banned)}
        return RequestParts(response_format={"type": "json_schema", "json_schema": schema})

    def wire(self, messages: Sequence[Message]) -> list[Message]:
        names = {c.id: c.name for m in messages if m["role"] == "assistant" for c in calls_of(m)}
        return [self._sent(m, names) for m in messages]

    def read(self, message: AssistantMessage) -> ParsedReply:
        text = message.content or ""
        thought, call, problem = _parse(text)
        if call is None:
            return ParsedReply(text, message.reasoning, (), problem=problem, raw=text)
        if call.name == FINISH:
            summary = str(json.loads(call.arguments).get("summary", ""))
            return ParsedReply(thought, message.reasoning, (), finish=summary, raw=text)
        return ParsedReply(thought, message.reasoning, (call,), raw=text)

    def _sent(self, message: Message, names: dict[str, str]) -> Message:
        if message["role"] == "tool":
            return {"role": "user", "content": f"Result of {names.get(message['tool_call_id'])}:\n{message['content']}"}
        if message["role"] != "assistant":
            return {"role": message["role"], "content": message["content"]}
        raw, calls = message.get("raw"), calls_of(message)
        parsed = _parse(raw)[1] if raw is not None else None
        if raw is not None and (not calls or (parsed is not None and same_calls([parsed], calls))):
            return {"role": "assistant", "content": raw}
        return {"role": "assistant", "content": _render(message.get("content") or "", calls)}


def _parse(text: str) -> tuple[str, ToolCall | None, str | None]:
    """(thought, call, problem) of a reply's text."""
    try:
        value, _ = _DECODER.raw_decode(text.strip())
    except (ValueError, RecursionError):
        return "", None, "the reply was not the JSON object that was asked for"
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        return "", None, "the reply named no tool"
    arguments = value.get("arguments")
    if not isinstance(arguments, dict):
        return "", None, "the reply had no arguments"
    call = ToolCall("", value["tool"], json.dumps(arguments, ensure_ascii=False))
    return str(value.get("thought", "")), call, None


def _render(thought: str, calls: Sequence[ToolCall]) -> str:
    """A stored message whose calls were changed (or which came from elsewhere), as the schema would have it."""
    if not calls:
        return thought
    objects = []
    for call in calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            arguments = {}
        objects.append(json.dumps({"thought": thought, "tool": call.name, "arguments": arguments}, ensure_ascii=False))
    return "\n".join(objects)
