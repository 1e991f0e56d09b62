"""The double's HTTP side: llama-server's endpoints on 127.0.0.1, with keep-alive, streaming and broken connections."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.serving.client import TAG_HEADER
from harness.serving.scripted import documents
from harness.serving.scripted.engine import Answer, Engine
from harness.serving.scripted.errors import Refused
from harness.serving.scripted.tokenizer import detokenize, pieces, tokenize

_JSON = "application/json; charset=utf-8"


class ScriptedHTTPServer(ThreadingHTTPServer):
    """Listens at once, on port 0 at a free one; `engine` is to be set before it serves."""

    daemon_threads = True
    # A scenario may break a connection; what the handler thread then meets is no news.
    block_on_close = False
    engine: Engine

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address_text(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def vanish(self) -> None:
        """Stops listening for good, as a server that died: connections are refused from now on."""
        self.socket.close()
        threading.Thread(target=self.shutdown, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the double."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedHTTPServer
    # One packet for headers and a small body, so that no answer waits for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """server.log is written by the engine."""

    def version_string(self) -> str:
        return "llama.cpp"

    def do_GET(self) -> None:
        engine = self.server.engine
        self._route(
            {
                "/health": lambda: {"status": "ok"},
                "/v1/health": lambda: {"status": "ok"},
                "/props": lambda: documents.props(engine.model, engine.n_ctx),
                "/slots": engine.slots,
                "/v1/models": engine.models,
                "/models": engine.models,
                "/metrics": lambda: _off("metrics endpoint. Start it with `--metrics`"),
            }
        )

    def do_POST(self) -> None:
        engine = self.server.engine
        self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._route(
            {
                "/v1/chat/completions": self._chat,
                "/chat/completions": self._chat,
                "/tokenize": lambda: _tokenize(self._document()),
                "/detokenize": lambda: {"content": _detokenize(self._document())},
                "/apply-template": lambda: engine.apply_template(self._document()),
                "/v1/systemone": lambda: engine.decide(self._document()),
                "/props": lambda: _off("changing global properties. Start it with `--props`"),
            }
        )

    def _route(self, routes: dict[str, Callable[[], Any]]) -> None:
        path = urlsplit(self.path).path
        try:
            if path not in ("/health", "/v1/health"):
                self.server.engine.check_key(_bearer(self.headers.get("Authorization")))
            if path in routes:
                answer = routes[path]()
            elif self.command == "POST" and path.startswith("/slots/"):
                answer = self._slot_action(path.removeprefix("/slots/"))
            else:
                raise Refused(404, "File Not Found")
        except Refused as e:
            time.sleep(e.latency_s)
            self._send(e.status, e.body(), close=True)
            return
        if not isinstance(answer, Answer):
            self._send(200, answer)
        else:
            self._deliver(answer)

    def _chat(self) -> Answer:
        return self.server.engine.chat(self._document(), self.headers.get(TAG_HEADER, "agent"))

    def _slot_action(self, number: str) -> dict[str, Any]:
        if not number.isdecimal():
            raise Refused(400, "Invalid slot ID")
        if parse_qs(urlsplit(self.path).query).get("action") != ["erase"]:
            raise Refused(400, "Invalid action")
        return self.server.engine.erase(int(number))

    def _document(self) -> Any:
        text = self._body.decode("utf-8", "replace")
        try:
            return json.loads(text)
        except ValueError as e:
            raise self.server.engine.malformed(text, e) from e

    def _deliver(self, answer: Answer) -> None:
        time.sleep(answer.latency_s)
        if answer.transport == "answer":
            request = self._document()
            if request.get("stream"):
                self._stream(answer.document, bool((request.get("stream_options") or {}).get("include_usage")))
            else:
                self._send(200, answer.document)
            return
        self.close_connection = answer.transport != "not_json"
        if answer.transport == "gone":
            self.server.vanish()
        elif answer.transport == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif answer.transport == "half_body":
            data = _bytes(answer.document)
            self._head(200, len(data))
            self.wfile.write(data[: len(data) // 2])
        elif answer.transport == "not_json":
            data = b"<html><body>Bad gateway</body></html>"
            self._head(200, len(data), "text/html")
            self.wfile.write(data)

    def _send(self, status: int, document: Any, *, close: bool = False) -> None:
        data = _bytes(document)
        self._head(status, len(data), close=close)
        self.wfile.write(data)

    def _head(self, status: int, size: int | None, kind: str = _JSON, *, close: bool = False) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", ""))
        if kind == "text/event-stream":
            self.send_header("X-Accel-Buffering", "no")
        self.send_header("Content-Type", kind)
        if size is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(size))
        if close:
            self.send_header("Connection", "close")
        else:
            self.send_header("Keep-Alive", "timeout=5, max=100")
        self.end_headers()

    def _stream(self, document: dict[str, Any], include_usage: bool) -> None:
        self._head(200, None, "text/event-stream")
        for chunk in documents.chunks(document, include_usage=include_usage):
            self._chunk(b"data: " + _bytes(chunk) + b"\n\n")
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _bytes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _bearer(header: str | None) -> str | None:
    return header.removeprefix("Bearer ") if header else None


def _off(what: str) -> Any:
    raise Refused(501, f"This server does not support {what}")


def _tokenize(body: Any) -> dict[str, Any]:
    content = body.get("content", "") if isinstance(body, dict) else ""
    if not isinstance(content, str):
        raise Refused(400, "content must be a string")
    tokens = tokenize(content)
    if not body.get("with_pieces"):
        return {"tokens": tokens}
    return {"tokens": [{"id": t, "piece": p} for t, p in zip(tokens, pieces(content), strict=True)]}


def _detokenize(body: Any) -> str:
    tokens = body.get("tokens", []) if isinstance(body, dict) else []
    try:
        return detokenize(tokens)
    except (TypeError, ValueError) as e:
        raise Refused(400, str(e)) from e
