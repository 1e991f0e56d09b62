"""A streamed answer put together to the document that the same answer would have been without streaming.

Pure. The pieces are server-sent events with one JSON chunk each, the last one `[DONE]`. What only the last chunks carry (finish
reason, usage, llama-server's timings) is taken from wherever it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

TEXTS = ("content", "reasoning_content", "refusal")


def assemble(body: bytes) -> tuple[int | None, dict[str, Any] | None]:
    """(status of an error inside the stream, document); the document is None when there was not one readable chunk.

    An error that came after the first bytes travels in the stream, under status 200: it is the document then.
    """
    document: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    finish, seen = None, False
    for chunk in chunks(body):
        error = chunk.get("error")
        if error is not None:
            code = error.get("code") if isinstance(error, dict) else None
            return (code if isinstance(code, int) else None), {"error": error}
        for key in ("id", "model", "usage", "timings"):
            if chunk.get(key) is not None:
                document[key] = chunk[key]
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or choice.get("index") not in (0, None):
            continue
        seen = True
        finish = choice.get("finish_reason") or finish
        delta = choice.get("delta")
        if isinstance(delta, dict):
            _add(message, calls, delta)
    if not seen:
        return None, None
    if calls:
        message["tool_calls"] = [calls[number] for number in sorted(calls)]
    return None, document | {"choices": [{"index": 0, "finish_reason": finish, "message": message}]}


def chunks(body: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream's `data:` lines; what is none is skipped."""
    for line in body.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        # llama-server once sent an error under a field of its own name
        if name not in ("data", "error") or value.strip() == "[DONE]":
            continue
        try:
            chunk = json.loads(value)
        except ValueError:
            continue
        if isinstance(chunk, dict):
            yield chunk if name == "data" else {"error": chunk}


def _add(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    for key in TEXTS:
        if isinstance(delta.get(key), str):
            message[key] = (message.get(key) or "") + delta[key]
    for part in delta.get("tool_calls") or ():
        if not isinstance(part, dict):
            continue
        index = part.get("index")
        number = index if isinstance(index, int) else len(calls)
        call = calls.setdefault(number, {"type": "function", "function": {"name": "", "arguments": ""}})
        if part.get("id"):
            call["id"] = part["id"]
        function = part.get("function")
        for key in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(key), str):
                call["function"][key] += function[key]
