"""Turns what passes the proxy into the events that an own agent's loop would have written.

A step is one chat request. Its events are written in the order of arrival, under one lock: what changed in the copy since the last
look (`tree`, which belongs to the step before), what changed in the conversation, and the `request`; its `response` when the answer
is complete. The `start` event waits for the first request, which holds the tools and the system prompt.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from harness.agent.exchange import describe
from harness.external.history import History
from harness.external.stream import assemble
from harness.external.watch import WatchedTree
from harness.record.events import EventSink
from harness.serving.classify import classify
from harness.serving.outcome import ChatRequest, ErrorKind, Outcome, ServerError


class Recorder:
    """start: the fields of the start event that are known before the first request. max_steps: how many requests may pass."""

    def __init__(
        self, sink: EventSink, tree: WatchedTree, start: Mapping[str, Any], *, max_steps: int, n_ctx: int | None
    ) -> None:
        self.lock = threading.Lock()
        self.steps = 0
        self.refused = 0
        self.last: dict[str, Any] = {}  # the newest answer's facts; empty when the agent did not wait for it
        self._sink, self._tree, self._start = sink, tree, dict(start)
        self._max_steps, self._n_ctx = max_steps, n_ctx
        self._history = History()
        self._tools: list[Any] | None = None
        self._requests: dict[int, ChatRequest] = {}

    def admit(self) -> int | None:
        """The step of one more chat request; None when the run's limit is used up. Call it, and `request`, under the lock."""
        if self.steps >= self._max_steps:
            self.refused += 1
            return None
        self.steps += 1
        return self.steps - 1

    def request(self, step: int, raw: bytes) -> None:
        """A chat request went out; raw: its body's bytes."""
        body = _document(raw)
        sent, offered = body.get("messages"), body.get("tools")
        readable = isinstance(sent, list) and all(isinstance(m, dict) for m in sent)
        messages: list[dict[str, Any]] = sent if readable and isinstance(sent, list) else []
        tools: list[Any] = offered if isinstance(offered, list) else []
        self._begin(messages, tools)
        self._look(max(step - 1, 0))
        if readable:
            self._history.becomes(messages, self._sink, step)
        self._requests[step] = ChatRequest(messages=messages, seed=0, temperature=0.0, extra=body)
        self._sink.emit(
            "request",
            step=step,
            attempt=0,
            tag="agent",
            n_messages=len(messages),
            params={k: v for k, v in body.items() if k not in ("messages", "tools")},
            tools=bool(tools),
            sha256=hashlib.sha256(raw).hexdigest(),
            **({} if tools in ([], self._tools) else {"schemas": tools}),
            **({} if readable else {"messages": []}),
        )

    def response(self, step: int, status: int, headers: Sequence[tuple[bytes, bytes]], raw: bytes, ms: float) -> None:
        """The whole answer to a chat request; raw: its body as it came, without the chunks' frames."""
        plain, kind = _plain(status, headers, raw)
        if kind.startswith("text/event-stream"):
            code, document = assemble(plain)
            status = code or status
            plain = plain if document is None else json.dumps(document, ensure_ascii=False).encode()
        self._answered(step, classify(self._requests[step], status, _writable(plain), ms, self._n_ctx))

    def failed(self, step: int, kind: ErrorKind, text: str, ms: float, status: int | None, *, server: bool) -> None:
        """A chat request without a whole answer. server: it is the server's failure, not the agent's, which hung up."""
        self._answered(step, ServerError(kind, status, None, text, ms))
        if not server:
            self.last = {}

    def note(self, kind: str, text: str) -> None:
        with self.lock:
            self._sink.emit("note", step=max(self.steps - 1, 0), kind=kind, text=text)

    def finish(self) -> None:
        """The agent has ended: its last changes, and a start event if there was no request at all."""
        with self.lock:
            self._begin([], [])
            self._look(max(self.steps - 1, 0))

    def _answered(self, step: int, outcome: Outcome) -> None:
        with self.lock:
            del self._requests[step]
            self.last = describe(outcome)
            self._sink.emit("response", step=step, attempt=0, tag="agent", **self.last, dropped=False)

    def _begin(self, messages: list[dict[str, Any]], tools: list[Any]) -> None:
        if self._tools is not None:
            return
        self._tools = tools
        first = messages[0] if messages else {}
        system = first.get("content") if first.get("role") in ("system", "developer") else None
        self._sink.emit("start", **self._start, system=system if isinstance(system, str) else None, tools=tools)

    def _look(self, step: int) -> None:
        change = self._tree.change()
        if change is not None:
            self._sink.emit("tree", step=step, digest=change.digest, changes=change.changes)


def _document(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(_writable(raw))
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _writable(raw: bytes) -> bytes:
    """JSON whose escapes hold no lone half of a surrogate pair, which no UTF-8 file can hold; such a half becomes U+FFFD."""
    if b"\\ud" not in raw.lower():
        return raw
    try:
        text = json.dumps(json.loads(raw), ensure_ascii=False)
    except (ValueError, RecursionError):
        return raw
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _plain(status: int, headers: Sequence[tuple[bytes, bytes]], raw: bytes) -> tuple[bytes, str]:
    """(the body without its compression, its content type)."""
    told = [(k, v) for k, v in headers if k.lower() in (b"content-type", b"content-encoding")]
    response = httpx.Response(status, headers=told, stream=httpx.ByteStream(raw))
    try:
        return response.read(), response.headers.get("content-type", "")
    except httpx.DecodingError:
        return raw, response.headers.get("content-type", "")
