"""One chat request as the scenario sees it: the conversation, what the agent can still read in it, and its size."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

# How cleared content begins, in every clearing policy that leaves a placeholder.
PLACEHOLDER = "[cleared"
READS = ("read_file",)


@dataclass(frozen=True)
class RequestView:
    """number: which request of the agent's this is, from 0. prompt_tokens: the size of its prompt. n_ctx: the window.

    reads: path -> text, for every file whose content stands in the conversation now. read_before: the paths that stood in
    this or an earlier request. last_call: name and path of the newest call in the history.
    """

    number: int
    messages: list[dict[str, Any]]
    tools: tuple[str, ...]
    prompt_tokens: int
    n_ctx: int
    seed: int | None = None
    reads: dict[str, str] = field(default_factory=dict)
    read_before: frozenset[str] = frozenset()
    last_call: tuple[str, str] | None = None

    def last(self, role: str) -> str:
        """The text of the last message of a role; empty when there is none."""
        return next((text(m) for m in reversed(self.messages) if m.get("role") == role), "")

    def cleared(self, path: str) -> bool:
        """Whether the file was read, and none of it is left to read in the conversation."""
        return path in self.read_before and path not in self.reads


def view(body: dict[str, Any], number: int, prompt_tokens: int, n_ctx: int, read_before: frozenset[str]) -> RequestView:
    """What a checked request body holds."""
    messages = body["messages"]
    calls = _calls(messages)
    reads: dict[str, str] = {}
    for message in messages:
        name, path = calls.get(str(message.get("tool_call_id")), ("", ""))
        content = text(message)
        if message.get("role") == "tool" and name in READS and path and not content.startswith((PLACEHOLDER, "error:")):
            reads[path] = content
    seed = body.get("seed")
    return RequestView(
        number=number,
        messages=messages,
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or []),
        prompt_tokens=prompt_tokens,
        n_ctx=n_ctx,
        seed=seed if isinstance(seed, int) else None,
        reads=reads,
        read_before=read_before | reads.keys(),
        last_call=next(reversed(calls.values()), None),
    )


def text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def _calls(messages: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Call id -> the call's name and its `path` argument (empty for a call without one)."""
    found: dict[str, tuple[str, str]] = {}
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            found[str(call.get("id"))] = (str(function.get("name")), _path(function))
    return found


def _path(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    try:
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return ""
    path = arguments.get("path") if isinstance(arguments, dict) else None
    return path if isinstance(path, str) else ""
