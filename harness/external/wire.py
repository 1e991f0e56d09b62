"""HTTP/1.1 messages as the bytes they are: h11 says where one ends and what it means, the bytes are handed on untouched."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

CHUNK = 1 << 16
CONNECT_S = 10.0
HEAD_END = re.compile(rb"\r?\n\r?\n")
LARGEST_BODY = 1 << 26
Headers = list[tuple[bytes, bytes]]


class WireError(Exception):
    """What came is no HTTP, or too large; status: what to answer a client that sent it."""

    status = 400


@dataclass(frozen=True)
class Request:
    """One request. framed: the body's bytes as they came, chunk frames included; body: without them. keep: the connection stays."""

    method: str
    target: str
    headers: Headers
    framed: bytes
    body: bytes
    keep: bool
    version: str = "1.1"

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


class Incoming:
    """Reads one request after the other from a client's socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""

    def next(self) -> Request | None:
        """The next request; None when the client has gone. Raises WireError."""
        parser = h11.Connection(h11.SERVER)
        raw = bytearray(self._rest)
        if raw:
            parser.receive_data(bytes(raw))
        head: h11.Request | None = None
        body = bytearray()
        try:
            while True:
                event = parser.next_event()
                if isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    break
                elif event is h11.NEED_DATA:
                    if parser.they_are_waiting_for_100_continue:
                        self._sock.sendall(parser.send(h11.InformationalResponse(status_code=100, headers=[])))
                    data = self._sock.recv(CHUNK)
                    if not data:
                        return None
                    raw += data
                    parser.receive_data(data)
                else:
                    return None
                if len(raw) > LARGEST_BODY:
                    error = WireError(f"the request is larger than {LARGEST_BODY} bytes")
                    error.status = 413
                    raise error
        except h11.RemoteProtocolError as e:
            raise WireError(f"this is no HTTP/1.1 request: {e}") from e
        assert head is not None
        self._rest = parser.trailing_data[0]
        end = HEAD_END.search(raw)
        assert end is not None
        framed = bytes(raw[end.end() : len(raw) - len(self._rest)])
        keep = parser.their_state is h11.DONE
        return Request(
            method=head.method.decode(),
            target=head.target.decode("latin-1"),
            headers=head.headers.raw_items(),
            framed=framed,
            body=bytes(body),
            keep=keep,
            version=head.http_version.decode(),
        )


class Answer:
    """Follows an answer while its bytes pass; done: it is whole. began: something came. Raises WireError for what is none."""

    def __init__(self, method: str) -> None:
        self._parser = h11.Connection(h11.CLIENT)
        self._parser.send(h11.Request(method=method, target="/", headers=[("host", "server")]))
        self._parser.send(h11.EndOfMessage())
        self.status: int | None = None
        self.headers: Headers = []
        self.body = bytearray()
        self.done = False
        self.began = False

    @property
    def keep(self) -> bool:
        """Whether the server leaves the connection open after this answer."""
        return self._parser.their_state is h11.DONE

    def receive(self, data: bytes) -> None:
        """data: b"" for the end of the connection."""
        self.began = self.began or bool(data)
        try:
            self._parser.receive_data(data)
            for event in self._events():
                if isinstance(event, h11.Response):
                    self.status, self.headers = event.status_code, event.headers.raw_items()
                elif isinstance(event, h11.Data):
                    self.body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    self.done = True
        except h11.RemoteProtocolError as e:
            raise WireError(f"the server's answer is broken off or no HTTP/1.1: {e}") from e

    def _events(self) -> Iterator[h11.Event]:
        while not self.done:
            event = self._parser.next_event()
            if not isinstance(event, h11.Event) or isinstance(event, h11.ConnectionClosed):
                return
            yield event


class Upstream:
    """The way to the run's server.

    url: its address, a path in front of /v1 included. api_key: the true one, None for none. timeout_s: for one piece of a transfer.
    """

    def __init__(self, url: str, api_key: str | None, timeout_s: float) -> None:
        parts = urlsplit(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self._netloc, self._prefix = parts.netloc.encode(), parts.path.rstrip("/")
        self._key, self._timeout = api_key, timeout_s

    def connect(self) -> socket.socket:
        sock = socket.create_connection((self._host, self._port), min(CONNECT_S, self._timeout))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            sock = self._tls.wrap_socket(sock, server_hostname=self._host)
        sock.settimeout(self._timeout)
        return sock

    def encode(self, request: Request) -> bytes:
        """The request as the server gets it: as it came, but for the host's name, the key, and an expectation already met."""
        lines = [f"{request.method} {self._prefix}{request.target} HTTP/{request.version}".encode("latin-1")]
        for name, value in request.headers:
            low = name.lower()
            if low == b"expect" or (low == b"authorization" and self._key):
                continue
            lines.append(name + b": " + (self._netloc if low == b"host" else value))
        if self._key:
            lines.append(b"Authorization: Bearer " + self._key.encode())
        return b"\r\n".join(lines) + b"\r\n\r\n" + request.framed
