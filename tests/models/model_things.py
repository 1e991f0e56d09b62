"""Small real things to fetch models from: GGUF files, and an HTTP server with ranges that can break or wait."""

from __future__ import annotations

import hashlib
import re
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(payload: bytes = b"", *, window: int | None = 4096) -> bytes:
    """A GGUF header with a name, a vocabulary of two words and (unless None) a context length, then the payload."""
    pairs = [text("general.architecture") + struct.pack("<I", 8) + text("tiny")]
    pairs.append(text("tiny.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"))
    pairs.append(text("tiny.scores") + struct.pack("<IIQff", 9, 6, 2, 0.5, 1.5))
    if window is not None:
        pairs.append(text("tiny.context_length") + struct.pack("<II", 4, window))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs) + payload


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class FileServer:
    """Serves `files` on 127.0.0.1; `asked` lists (path, Range header) of every request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.ranges = True
        self.break_after: list[int] = []  # one per request: bytes sent before the connection is closed
        self.hold_at: int | None = None  # bytes of the file sent before waiting for `go_on`
        self.go_on = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        content = self.files.get(request.path)
        if content is None:
            request.send_error(404)
            return
        match = re.fullmatch(r"bytes=(\d+)-", wanted or "") if self.ranges else None
        start = int(match[1]) if match else 0
        if match and start >= len(content):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(content)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if match else 200)
        if match:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        self._send(request, content, start)

    def _send(self, request: BaseHTTPRequestHandler, content: bytes, start: int) -> None:
        end = start + self.break_after.pop(0) if self.break_after else len(content)
        try:
            if self.hold_at is not None and start < self.hold_at < end:
                request.wfile.write(content[start : self.hold_at])
                request.wfile.flush()
                self.go_on.wait(30)
                start = self.hold_at
            request.wfile.write(content[start:end])
        except (BrokenPipeError, ConnectionResetError):
            pass
        request.close_connection = True

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


class Told:
    """A fetch's announcements, kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.steps: list[tuple[int, int | None]] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def at(self, what: str, done: int, total: int | None) -> None:
        self.steps.append((done, total))
