"""A run's events as Inspect's: requests as model events, calls as tool events, the rest in words as info events.

A model event's input is the conversation as it was sent, placeholders included, so that a clear can be seen where it
took effect; its output is the reply as the server gave it, before an agent read calls out of its text. A request that got no
reply has an error instead. Input tokens are the evaluated ones; what came from the prompt cache is the cache read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from analysis.export_inspect.messages import call_of, calls_of, message_of
from analysis.report.transcript import CUT_WORDS, transcript
from harness.record.conversation import conversations
from harness.record.slot import Event, Message

STOPPED = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls"}
TOLD = ("context", "approval", "guard", "finish_check", "note", "stop")
CONFIG = ("temperature", "top_p", "top_k", "seed", "max_tokens", "frequency_penalty", "presence_penalty")


def events_of(events: Sequence[Event], model: str, started: datetime) -> list[dict[str, Any]]:
    """What happened, in order. started: when the run began, to which the events' own seconds are added."""
    return list(_Mapping(events, model, started).run())


def usage_of(response: Event) -> dict[str, Any] | None:
    """The tokens of one reply; None when it tells none."""
    timings, usage = response.get("timings") or {}, response.get("usage") or {}
    read, written = timings.get("prompt_n"), timings.get("predicted_n")
    if read is None:
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if read is None:
        return None
    cached = timings.get("cache_n")
    total = read + (cached or 0) + (written or 0)
    return {
        "input_tokens": read,
        "input_tokens_cache_read": cached,
        "output_tokens": written or 0,
        "total_tokens": total,
    }


def stop_reason_of(response: Event) -> str:
    """Why the reply ended, in Inspect's words: a full window and a reply limit are two things there too."""
    if response.get("outcome") == "cut":
        return "model_length" if response.get("kind") == "window" else "max_tokens"
    return STOPPED.get(str(response.get("finish_reason")), "unknown")


class _Mapping:
    def __init__(self, events: Sequence[Event], model: str, started: datetime) -> None:
        self.events = events
        self.model = model
        self.started = started
        self.sent = {(id(request)): messages for request, messages in conversations(events)}
        self.start = next((e for e in events if e["event"] == "start"), {})
        self.request: Event | None = None

    def run(self) -> Iterator[dict[str, Any]]:
        for event in self.events:
            kind = event["event"]
            if kind == "request":
                self.request = event
            elif kind == "response":
                yield self._model_event(event)
                yield from self._cut(event)
                self.request = None
            elif kind == "call":
                yield self._tool_event(event)
            elif kind in TOLD:
                yield from self._told(event)

    def _model_event(self, response: Event) -> dict[str, Any]:
        request = self.request or {}
        seconds = float(response.get("ms") or 0) / 1000
        began = request.get("t", max(response["t"] - seconds, 0))
        params = request.get("params") or {}
        tag = str(response.get("tag") or "agent")
        messages = request.get("messages") or self.sent.get(id(self.request), [])
        output = self._output(response) | {"time": seconds}
        facts = {k: response.get(k) for k in ("step", "attempt", "outcome", "kind", "dropped", "status")}
        return self._at(began, "model") | {
            "model": self.model,
            "role": None if tag == "agent" else tag,
            "input": _conversation(messages),
            "tools": self._tools(request),
            "tool_choice": "auto",
            "config": {k: params[k] for k in CONFIG if params.get(k) is not None},
            "output": output,
            "error": None if output["choices"] else str(response.get("error") or response.get("outcome")),
            "completed": self._time(response["t"]),
            "working_time": seconds,
            "metadata": {k: v for k, v in facts.items() if v is not None},
        }

    def _output(self, response: Event) -> dict[str, Any]:
        message, usage = response.get("message"), usage_of(response)
        choices = []
        if message and response.get("outcome") in ("reply", "cut"):
            number = f"{response.get('step')}-{response.get('attempt') or 0}"
            said = message_of(message | {"role": "assistant"}, calls=calls_of(message, number))
            choices = [{"message": said, "stop_reason": stop_reason_of(response)}]
        return {"model": self.model, "choices": choices} | ({"usage": usage} if usage else {})

    def _tools(self, request: Event) -> list[dict[str, Any]]:
        if not request.get("tools"):
            return []
        schemas = request.get("schemas") or self.start.get("tools") or []
        return [_tool(s.get("function") or s) for s in schemas if isinstance(s, dict)]

    def _tool_event(self, call: Event) -> dict[str, Any]:
        seconds = float(call.get("ms") or 0) / 1000
        result = str(call.get("result") or "")
        made = call_of(call, f"{call.get('step')}-{call.get('call') or 0}")
        return self._at(max(call["t"] - seconds, 0), "tool") | {
            "id": made["id"],
            "function": made["function"],
            "arguments": made["arguments"],
            "result": result,
            "error": None if call.get("ok") is not False else {"type": "unknown", "message": result},
            "completed": self._time(call["t"]),
            "working_time": seconds,
            "metadata": {"step": call.get("step"), "changed": call.get("changed")},
        }

    def _cut(self, response: Event) -> Iterator[dict[str, Any]]:
        if response.get("outcome") == "cut":
            words = CUT_WORDS.get(str(response.get("kind")), "cut")
            fate = "dropped" if response.get("dropped") else "taken as it came"
            yield self._info(response["t"], f"step {response.get('step')}: reply {words}, {fate}", "")

    def _told(self, event: Event) -> Iterator[dict[str, Any]]:
        # Which messages a clear left is told by the next request's input; the words alone need no conversation.
        for block in transcript([event | {"after": []} if event["event"] == "context" else event]):
            yield self._info(event["t"], block.title, block.text)

    def _info(self, seconds: float, title: str, text: str) -> dict[str, Any]:
        return self._at(seconds, "info") | {"source": "calledshot", "data": f"**{title}**" + _fenced(text)}

    def _at(self, seconds: float, kind: str) -> dict[str, Any]:
        return {"event": kind, "timestamp": self._time(seconds), "working_start": seconds}

    def _time(self, seconds: float) -> str:
        return (self.started + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def _conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    names: dict[str, str] = {}
    found = []
    for number, message in enumerate(messages):
        calls = calls_of(message, str(number))
        names |= {c["id"]: c["function"] for c in calls}
        found.append(message_of(message, functions=names, calls=calls))
    return found


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema with what every reader of it needs: names, types and words of the parameters."""
    parameters = function.get("parameters") or {}
    properties = {
        name: {k: v for k in ("type", "description") if isinstance(v := one.get(k), str)}
        for name, one in (parameters.get("properties") or {}).items()
        if isinstance(one, dict)
    }
    return {
        "name": str(function.get("name") or ""),
        "description": str(function.get("description") or ""),
        "parameters": {"properties": properties, "required": list(parameters.get("required") or ())},
    }


def _fenced(text: str) -> str:
    """Text that is shown as it is: in a code fence longer than any in it."""
    if not text:
        return ""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"\n\n{fence}\n{text}\n{fence}"
