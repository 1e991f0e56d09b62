"""Messages and calls of a record in the form of Inspect's chat messages.

The recorded conversation is in OpenAI's chat form; a response event's own message is flatter (reasoning, calls without a
`function` level). Both are taken here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def message_of(
    message: Mapping[str, Any],
    *,
    functions: Mapping[str, str] | None = None,
    calls: Sequence[dict[str, Any]] = (),
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A chat message. functions: the names of the tools by call id, for tool results; metadata: left out when empty."""
    role = ROLES.get(str(message.get("role") or "assistant"), "user")
    thinking = message.get("reasoning_content") or message.get("reasoning")
    content: Any = _text(message.get("content"))
    if thinking and role == "assistant":
        content = [{"type": "reasoning", "reasoning": str(thinking)}, {"type": "text", "text": content}]
    made: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant" and calls:
        made["tool_calls"] = list(calls)
    if role == "tool":
        identity = message.get("tool_call_id")
        made |= {"tool_call_id": identity, "function": (functions or {}).get(str(identity))}
    return made | ({"metadata": metadata} if metadata else {})


def calls_of(message: Mapping[str, Any], number: str) -> list[dict[str, Any]]:
    """The message's calls; one without an id gets `number` and its place."""
    return [call_of(call, f"{number}-{i}") for i, call in enumerate(message.get("tool_calls") or ())]


def call_of(call: Mapping[str, Any], number: str) -> dict[str, Any]:
    """A call of a conversation's message, of a response or of a call event; arguments that are no JSON object stay as text."""
    function = call.get("function") or call
    text = function.get("arguments") or "{}"
    error = None
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as e:
        arguments, error = {"text": text}, f"not JSON ({e})"
    if not isinstance(arguments, dict):
        arguments, error = {"text": text}, "not a JSON object"
    name = str(function.get("name") or "")
    return {"id": str(call.get("id") or number), "function": name, "arguments": arguments, "parse_error": error}


def _text(content: Any) -> str:
    """A message's text; of content in parts the text parts, and the kind of what is no text."""
    if not isinstance(content, list):
        return str(content or "")
    parts = [p if isinstance(p, dict) else {"text": str(p)} for p in content]
    return "\n".join(str(p["text"]) if "text" in p else f"[{p.get('type')}]" for p in parts)
