"""A real HTTP server that answers with exactly the bytes a test gives it, and keeps what it was asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Act = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Answering:
    """`acts`: what happens on (method, path); `asked`: (method, path, body) in order."""

    server: ThreadingHTTPServer
    acts: dict[tuple[str, str], Act] = field(default_factory=dict)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def on(self, method: str, path: str, status: int, body: Any, content_type: str = "application/json") -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()

        def act(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Content-Type", content_type)
            handler.send_header("Content-Length", str(len(raw)))
            handler.end_headers()
            handler.wfile.write(raw)

        self.acts[method, path] = act

    def chat(self, status: int, body: Any) -> None:
        self.on("POST", "/v1/chat/completions", status, body)

    def chat_act(self, act: Act) -> None:
        self.acts["POST", "/v1/chat/completions"] = act


def half_a_body(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices":[{"mess')
    handler.close_connection = True


def no_answer(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True


def start() -> Answering:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answering.asked.append((self.command, self.path, body))
            answering.headers.append(dict(self.headers))
            act = answering.acts.get((self.command, self.path))
            if act is None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                act(self)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    answering = Answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    answering.server.daemon_threads = True
    threading.Thread(target=answering.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return answering
