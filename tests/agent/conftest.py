"""A small local site for the fetch tool."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        bodies = {"/page": b"hello", "/big": b"x" * 300_000}
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.2/elsewhere")
            self.end_headers()
            return
        body = bodies.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args: object) -> None:
        pass


@dataclass(frozen=True)
class Site:
    url: str
    host: str


@pytest.fixture
def http_site() -> Iterator[Site]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    port = server.server_address[1]
    yield Site(f"http://127.0.0.1:{port}", f"127.0.0.1:{port}")
    server.shutdown()
    server.server_close()
