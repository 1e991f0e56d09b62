"""The double's chat template: messages and tools become one prompt text.

`template.jinja` beside this file is the same template for llama.cpp's own engine; the conformance test compares the two. Every
message renders to text that depends on that message alone, so appending messages keeps the prompt's beginning, and a reply
renders to exactly what was generated. Errors are those of llama-server, in its words.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, NoReturn

from harness.serving.scripted.errors import Refused
from harness.serving.scripted.tokenizer import IM_END, IM_START

GENERATION_PROMPT = f"{IM_START}assistant\n"
_TOOLS_HEAD = "\n\n# Functions\nOne JSON signature per line:\n<tools>"
_TOOLS_TAIL = (
    "\n</tools>\nA call is written as one JSON object between tags:\n"
    '<tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call>'
)

_EMPTY_INPUT = "attempting to parse an empty input; check that your input string or stream contains the expected JSON"

Message = dict[str, Any]


def source() -> str:
    """The Jinja text of the template, as GET /props shows it."""
    return files(__package__).joinpath("template.jinja").read_text(encoding="utf-8")


def render(body: dict[str, Any], *, keep_thinking: bool = True, check_arguments: bool = True) -> str:
    """The prompt of a request body, the beginning of the assistant's turn included.

    keep_thinking: render the `reasoning_content` of earlier replies. check_arguments: refuse a history whose call arguments are
    not JSON, as llama-server does; otherwise they are rendered as they came.

    Raises:
        Refused: 400 for messages that are missing or malformed, 500 for call arguments that are not JSON.
    """
    messages, tools = body.get("messages"), body.get("tools")
    if messages is None:
        raise Refused(400, "'messages' is required")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise Refused(400, "Expected 'messages' to be an array")
    if tools is not None and not isinstance(tools, list):
        raise Refused(400, "Expected 'tools' to be an array")
    parts: list[str] = []
    rest = messages
    head = ""
    if messages and messages[0].get("role") == "system":
        head, rest = _content(messages[0]), messages[1:]
    if tools or head:
        parts.append(f"{IM_START}system\n{head}")
        if tools:
            parts.append(_TOOLS_HEAD + "".join("\n" + _json(_signature(tool)) for tool in tools) + _TOOLS_TAIL)
        parts.append(f"{IM_END}\n")
    prefill = bool(rest) and rest[-1].get("role") == "assistant" and not rest[-1].get("tool_calls")
    for message in rest[:-1] if prefill else rest:
        parts.append(_turn(message, keep_thinking, check_arguments))
    parts.append(GENERATION_PROMPT)
    if prefill:
        parts.append(f"<think>\n{rest[-1].get('reasoning_content') or ''}\n</think>\n\n{_content(rest[-1])}")
    return "".join(parts)


def reply_text(thinking: str, content: str, calls: list[tuple[str, str]]) -> str:
    """What a model writes for a reply: thinking, text, then calls as (name, the text of the arguments)."""
    text = ""
    if thinking:
        text = f"<think>\n{thinking}{'' if thinking.endswith(chr(10)) else chr(10)}</think>\n\n"
    text += content
    for number, (name, arguments) in enumerate(calls):
        if number or (content and not content.endswith("\n")):
            text += "\n"
        text += f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
    return text


def arguments_text(value: Any) -> str:
    """Arguments as the template prints them: one blank after a comma and a colon, whole floats without a point."""
    return _json(value)


def _turn(message: Message, keep_thinking: bool, check_arguments: bool) -> str:
    role = message.get("role")
    if role == "tool":
        return f"{IM_START}user\n<tool_response>\n{_content(message)}\n</tool_response>{IM_END}\n"
    thinking = message.get("reasoning_content") if keep_thinking else None
    if thinking is not None and not isinstance(thinking, str):
        raise Refused(400, "Expected 'reasoning_content' to be a string")
    if not isinstance(message.get("tool_calls") or [], list):
        raise Refused(400, "Expected 'tool_calls' to be an array")
    calls = [_call(call, check_arguments) for call in message.get("tool_calls") or []]
    if role == "assistant" and "content" not in message and not calls:
        raise Refused(400, "Assistant message must contain either 'content' or 'tool_calls'!")
    content = _content(message, needed=role != "assistant")
    return f"{IM_START}{role}\n{reply_text(thinking or '', content, calls)}{IM_END}\n"


def _content(message: Message, *, needed: bool = True) -> str:
    content = message.get("content")
    if content is None and needed:
        raise Refused(400, "All non-assistant messages must contain 'content'")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise Refused(400, "Expected 'content' to be a string or an array")
    return content or ""


def _call(call: Any, check: bool) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or "name" not in function:
        raise Refused(400, "Missing tool call function")
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        return function["name"], _json(arguments)
    try:
        return function["name"], _printed(arguments)
    except ValueError as e:
        if not check:
            return function["name"], arguments
        raise Refused(500, f"Failed to parse tool call arguments as JSON: {parse_error(arguments, e)}") from e


# A conversation is rendered again for every request, its earlier calls with it.
@lru_cache(maxsize=4096)
def _printed(arguments: str) -> str:
    """Arguments that came as JSON text, as they stand in a prompt. Raises ValueError for what is no JSON."""
    return _json(json.loads(arguments, parse_constant=_no_constant))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def parse_error(text: str, error: ValueError) -> str:
    """llama-server's form of a JSON error; the reason is in this JSON library's words."""
    position = min(getattr(error, "pos", 0), len(text))
    line, column = text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1) + 1
    reason = f"syntax error while parsing value - {error}" if text else _EMPTY_INPUT
    return f"[json.exception.parse_error.101] parse error at line {line}, column {column}: {reason}"


def _signature(tool: Any) -> dict[str, Any]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or "name" not in function:
        raise Refused(400, "Missing tool function")
    return {
        "type": "function",
        "function": {
            "name": function["name"],
            "description": function.get("description", ""),
            "parameters": function.get("parameters", {}),
        },
    }


def _json(value: Any) -> str:
    return json.dumps(_plain_numbers(value), ensure_ascii=False)


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _plain_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(v) for v in value]
    return value
