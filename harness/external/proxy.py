"""The recording proxy: the only door of an external agent, on the harness's side of it.

Chat completions go to the run's server byte for byte and are recorded as steps. What neither asks the model nor touches its slot
(models, properties, tokens) passes unrecorded. Everything else is refused and noted, because it would leave something in the slot
that no event tells. Past the step limit a request is refused too, with a status that no client tries again.

One thread per connection, one connection to the server per request. The end of an answer is handed on after its `response` event is
written, so that the next request, on whatever connection, finds it there. A client that hangs up (or closes its sending half) makes
the proxy hang up on the server, which then stops working on the request, as it does for a client of its own.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
import time
from pathlib import Path

from harness.external.recorder import Recorder
from harness.external.wire import CHUNK, Answer, Incoming, Request, Upstream, WireError
from harness.serving.outcome import ErrorKind

CHAT = ("/v1/chat/completions", "/chat/completions")
READS = ("/health", "/v1/health", "/props", "/slots", "/models", "/metrics")
NO_SLOT = ("/tokenize", "/detokenize", "/apply-template")
CONNECTIONS = 64
WAIT_S = 10.0
HUNG_UP: tuple[ErrorKind, str] = ("connect", "the agent hung up before the answer was complete")
REASONS = {400: "Bad Request", 403: "Forbidden", 413: "Content Too Large"}


class Proxy:
    """Listens at a Unix socket (`at` a path) or, for a program outside a sandbox, at a port of 127.0.0.1 (`at` None)."""

    def __init__(self, upstream: Upstream, recorder: Recorder, at: Path | None, *, timeout_s: float) -> None:
        self._upstream, self._recorder, self._timeout = upstream, recorder, timeout_s
        if at is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(at))
            at.chmod(0o666)  # the sandbox's user is another one; the folder around it is ours alone
            self._listener.listen(CONNECTIONS)
        self.port: int | None = self._listener.getsockname()[1] if at is None else None
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        self._open: dict[socket.socket, threading.Thread] = {}
        self._closing = False
        self.failure: Exception | None = None
        self._accepting = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Ends every connection and waits until all is recorded. Raises what kept a request from being recorded."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._hang_up()
        self._accepting.join(WAIT_S)
        self._hang_up()  # what came in meanwhile
        if self.failure is not None:
            raise self.failure

    def _hang_up(self) -> None:
        for sock, thread in list(self._open.items()):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            thread.join(WAIT_S)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            self._room.acquire()
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(sock,), name="proxy-connection", daemon=True)
            self._open[sock] = thread
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if client.family == socket.AF_INET:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            incoming = Incoming(client)
            while not self._closing and (request := incoming.next()) is not None:
                if not self._handle(client, request):
                    break
        except WireError as e:
            with contextlib.suppress(OSError):
                client.sendall(_refusal(e.status, "bad_request", str(e)))
        except OSError:
            pass  # the client went away
        except Exception as e:
            self.failure = self.failure or e
        finally:
            client.close()
            self._open.pop(client, None)
            self._room.release()

    def _handle(self, client: socket.socket, request: Request) -> bool:
        """Answers one request; whether the connection goes on."""
        if request.method == "POST" and request.path in CHAT:
            return self._chat(client, request)
        if _harmless(request):
            return _Relay(client, self._upstream, request, self._timeout).run()
        text = (
            f"{request.method} {request.path} is not offered to an external agent: only chat completions are recorded"
        )
        self._recorder.note("refused_endpoint", text)
        client.sendall(_refusal(403, "not_recorded", text))
        return False

    def _chat(self, client: socket.socket, request: Request) -> bool:
        relay = _Relay(client, self._upstream, request, self._timeout)
        with self._recorder.lock:
            step = self._recorder.admit()
            if step is not None:
                relay.send()
                self._recorder.request(step, request.body)
        if step is None:
            limit = self._recorder.steps
            text = f"the run's limit of {limit} requests is used up (agent.max_steps); stop here"
            client.sendall(_refusal(403, "step_limit", text))
            return False
        relay.record(self._recorder, step)
        return relay.run()


class _Relay:
    """One request's way to the server and its answer's way back."""

    def __init__(self, client: socket.socket, upstream: Upstream, request: Request, timeout_s: float) -> None:
        self._client, self._upstream, self._request, self._timeout = client, upstream, request, timeout_s
        self._server: socket.socket | None = None
        self._answer = Answer(request.method)
        self._recorder: Recorder | None = None
        self._step = 0
        self._began = 0.0
        self._failure: tuple[ErrorKind, str] | None = None

    def record(self, recorder: Recorder, step: int) -> None:
        self._recorder, self._step = recorder, step

    def send(self) -> None:
        """Hands the request on; a server that can't be reached is told by `run`."""
        self._began = time.perf_counter()
        try:
            self._server = self._upstream.connect()
            self._server.sendall(self._upstream.encode(self._request))
        except OSError as e:
            self._failure = ("connect", f"the server can't be reached: {e}")

    def run(self) -> bool:
        """Carries the answer; whether the connection goes on."""
        if not self._began:
            self.send()
        try:
            last = None if self._failure else self._carry()
        finally:
            if self._server is not None:
                self._server.close()
            self._told()
        if last is None:
            return False
        self._client.sendall(last)
        return self._request.keep and self._answer.keep

    def _carry(self) -> bytes | None:
        """Hands on all but the last piece of the answer, which comes back; None when it broke off (see _failure)."""
        assert self._server is not None
        poller = select.poll()
        poller.register(self._server, select.POLLIN)
        poller.register(self._client, select.POLLIN)
        while True:
            waiting = isinstance(self._server, ssl.SSLSocket) and self._server.pending()
            ready = [self._server.fileno()] if waiting else [fd for fd, _ in poller.poll(int(self._timeout * 1000))]
            if not ready:
                self._failure = ("timeout", f"no answer in {self._timeout:g} seconds")
                return None
            if self._client.fileno() in ready:
                if self._gone():
                    self._failure = HUNG_UP
                    return None
                poller.unregister(self._client)  # the next request is there already; it waits its turn
            if self._server.fileno() in ready and (last := self._pass()) is not None:
                return last
            if self._failure:
                return None

    def _gone(self) -> bool:
        try:
            return not self._client.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _pass(self) -> bytes | None:
        """Takes one piece from the server and hands it on, unless it is the last."""
        assert self._server is not None
        try:
            data = self._server.recv(CHUNK)
        except OSError as e:
            self._failure = ("connect", f"the connection to the server broke: {e}")
            return None
        try:
            self._answer.receive(data)
        except WireError as e:
            kind: ErrorKind = "malformed" if self._answer.began else "connect"
            self._failure = (kind, str(e))
        if self._answer.done:
            return data
        try:
            self._client.sendall(data)
        except OSError:
            self._failure = HUNG_UP
        return None

    def _told(self) -> None:
        """The answer's event."""
        if self._recorder is None:
            return
        ms = (time.perf_counter() - self._began) * 1000
        answer = self._answer
        if answer.done and answer.status is not None:
            self._recorder.response(self._step, answer.status, answer.headers, bytes(answer.body), ms)
        else:
            kind, text = self._failure or HUNG_UP
            self._recorder.failed(self._step, kind, text, ms, answer.status, server=(kind, text) != HUNG_UP)


def _harmless(request: Request) -> bool:
    path = request.path
    if request.method in ("GET", "HEAD"):
        return path in READS or path == "/v1/models" or path.startswith("/v1/models/")
    return request.method == "POST" and path.removeprefix("/v1") in NO_SLOT


def _refusal(status: int, kind: str, text: str) -> bytes:
    """An error in OpenAI's form, after which the connection ends."""
    body = json.dumps({"error": {"code": status, "type": kind, "message": f"called shot: {text}"}}).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
