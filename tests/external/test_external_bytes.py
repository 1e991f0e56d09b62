"""What goes through the proxy is, byte for byte, what would have gone to the server and come from it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from external_lab import proxied

CALLS = """
about: a call, an answer, a refusal, a broken reply
steps:
- calls: [{read_file: {path: "a.py"}}, {bash: {command: "ls"}}]
- {say: "Größe ≠ 3 👍", think: "long thought"}
- {fail: unparsed_new}
- {say: last, times: null}
"""
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
HI = [{"role": "user", "content": "hi"}]


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: somewhere", "content-TYPE: application/json", *headers]
    if not any(h.lower().startswith("transfer-encoding") for h in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chat(**fields: object) -> bytes:
    return post("/v1/chat/completions", json.dumps({"messages": HI, **fields}).encode(), "Connection: close")


def chunked(body: bytes) -> bytes:
    frames = b"".join(
        f"{len(body[i : i + 7]):x};odd=1\r\n".encode() + body[i : i + 7] + b"\r\n" for i in range(0, len(body), 7)
    )
    return post("/v1/chat/completions", frames + b"0\r\n\r\n", "Transfer-Encoding: chunked", "Connection: close")


REQUESTS = {
    "plain": chat(),
    "old path": post("/chat/completions", json.dumps({"messages": HI}).encode(), "Connection: close"),
    "tools": chat(tools=TOOLS, tool_choice="auto"),
    "streamed": chat(stream=True),
    "streamed with usage and tools": chat(stream=True, stream_options={"include_usage": True}, tools=TOOLS),
    "unknown fields": chat(cache_prompt=True, nonsense={"a": [1, None, 1e9]}, n_keep=-1),
    "odd blanks and order": post(
        "/v1/chat/completions",
        b'\n{ "stream" :false,\t"messages":[{"content":"\\u00e9","role":"user"}]}  ',
        "Connection: close",
    ),
    "a lone surrogate": post(
        "/v1/chat/completions", b'{"messages":[{"role":"user","content":"\\ud83d"}]}', "Connection: close"
    ),
    "big": chat(padding="x" * 3_000_000),
    "chunked": chunked(json.dumps({"messages": HI}).encode()),
    "not JSON": post("/v1/chat/completions", b"{broken", "Connection: close"),
    "no messages": chat(messages=None),
    "messages that are none": chat(messages=["a", 3]),
    "empty": post("/v1/chat/completions", b"", "Connection: close"),
    "too large": chat(messages=[{"role": "user", "content": "word " * 20000}]),
    "models": b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "props": b"GET /props HTTP/1.0\r\n\r\n",
    "tokens": post("/tokenize", b'{"content": "one two"}', "Connection: close"),
}


def exchange(port: int, data: bytes) -> bytes:
    """Everything that comes back on one connection."""
    with socket.create_connection(("127.0.0.1", port), 20) as sock:
        sock.sendall(data)
        received = b""
        try:
            while part := sock.recv(1 << 16):
                received += part
        except ConnectionResetError:
            pass
    return received


def settled(answer: bytes) -> bytes:
    """Without what two equal requests to one server differ in: date, ids, times and measured speeds."""
    answer = re.sub(rb"(?mi)^Date: .*$", b"Date:", answer)
    answer = re.sub(rb'"(id|created|[a-z_]*(?:_ms|_per_second|per_token_ms))":("[^"]*"|[-\d.e]+)', rb'"\1":0', answer)
    return re.sub(rb"(?mi)^Content-Length: \d+\r?$", b"Content-Length:", answer)


@pytest.mark.parametrize("what", list(REQUESTS))
def test_an_answer_is_the_same_through_the_proxy_and_without_it(double, tmp_path, what):
    server = double(CALLS)
    direct = exchange(port_of(server), REQUESTS[what])
    server.erase()
    with proxied(server, tmp_path / "root") as through:
        relayed = exchange(through.port, REQUESTS[what])
    assert direct.startswith(b"HTTP/1.")
    assert settled(relayed) == settled(direct)


def test_a_session_of_many_requests_on_one_connection_is_the_same(double, tmp_path):
    server = double(CALLS)
    session = b"".join(
        post("/v1/chat/completions", json.dumps({"messages": HI, "stream": s}).encode()) for s in (False, True, False)
    )
    session += chat()
    direct = exchange(port_of(server), session)
    server.erase()
    with proxied(server, tmp_path / "root") as through:
        relayed = exchange(through.port, session)
    assert direct.count(b"HTTP/1.1 ") == 3  # the double closes after an error
    assert settled(relayed) == settled(direct)
    outcomes = [e["outcome"] for e in through.events.kind("response")]
    assert outcomes == ["reply", "reply", "cut"]


@contextmanager
def listening(answer: bytes, *, slow: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """A server of a few lines: keeps what came, gives one answer (byte by byte when slow), hangs up."""
    came: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.settimeout(0.3)
                data = b""
                try:
                    while part := sock.recv(1 << 20):
                        data += part
                except TimeoutError:
                    pass
                came.append(data)
                for piece in [answer[i : i + 1] for i in range(len(answer))] if slow else [answer]:
                    sock.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], came
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def at(port: int):
    from harness.serving.running import RunningServer

    return RunningServer(kind="attach", base_url=f"http://127.0.0.1:{port}", n_ctx=4096, api_key=None)


@pytest.mark.parametrize("what", ["unknown fields", "odd blanks and order", "big", "chunked", "streamed"])
def test_a_request_reaches_the_server_as_it_was_sent(tmp_path, what):
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with listening(ok) as (port, came), proxied(at(port), tmp_path / "root") as through:
        assert exchange(through.port, REQUESTS[what]) == ok
    assert came == [REQUESTS[what].replace(b"Host: somewhere", f"Host: 127.0.0.1:{port}".encode())]


ODD_ANSWERS = {
    "gzip": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nX-ODD: Case\r\n"
    b"Connection: close\r\n\r\n"
    + gzip.compress(b'{"choices": [{"finish_reason": "stop", "message": {"content": "zipped"}}]}', mtime=0),
    "until the end": b'HTTP/1.1 200 Fine\r\n\r\n{"choices": [{"finish_reason": "stop", "message": {"content": "zipped"}}]}',
    "html error": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>",
    "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [',
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing": b"",
    "an error in the stream": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\ndata: {"error": {"code": 500, "message": "boom"}}\n\n',
}
RECORDED = {
    "gzip": ("reply", None),
    "until the end": ("reply", None),
    "html error": ("server_error", "http"),
    "half a body": ("server_error", "malformed"),
    "no HTTP": ("server_error", "malformed"),
    "nothing": ("server_error", "connect"),
    "an error in the stream": ("server_error", "http"),
}


@pytest.mark.parametrize("slow", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("what", list(ODD_ANSWERS))
def test_odd_answers_pass_unchanged_and_are_told_for_what_they_are(tmp_path, what, slow):
    with listening(ODD_ANSWERS[what], slow=slow) as (port, _), proxied(at(port), tmp_path / "root") as through:
        assert exchange(through.port, chat()) == ODD_ANSWERS[what]
    (response,) = through.events.kind("response")
    assert (response["outcome"], response["kind"]) == RECORDED[what]
    if response["outcome"] == "reply":
        assert response["message"]["content"] == "zipped"


def test_a_server_that_is_not_there_is_an_error_on_record(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with proxied(at(port), tmp_path / "root") as through:
        assert exchange(through.port, chat()) == b""
    (response,) = through.events.kind("response")
    assert (response["outcome"], response["kind"], response["status"]) == ("server_error", "connect", None)


@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_a_client_that_hangs_up_makes_the_proxy_hang_up(tmp_path, how):
    hung_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(1 << 16)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")
                sock.settimeout(20)
                if sock.recv(1) == b"":
                    hung_up.set()

        thread = threading.Thread(target=serve)
        thread.start()
        with proxied(at(listener.getsockname()[1]), tmp_path / "root") as through:
            client = socket.create_connection(("127.0.0.1", through.port), 20)
            client.sendall(chat())
            while b"begun" not in client.recv(1000):
                pass
            if how == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.shutdown(socket.SHUT_WR) if how == "half" else client.close()
            thread.join(20)
            assert hung_up.is_set()
            client.close()
    (response,) = through.events.kind("response")
    assert (response["outcome"], response["error"]) == (
        "server_error",
        "the agent hung up before the answer was complete",
    )
    assert through.recorder.last == {}


def test_a_stream_arrives_piece_by_piece(tmp_path):
    """The first piece is there before the server has written the second."""
    go_on = threading.Event()
    piece = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(1 << 16)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + piece)
                assert go_on.wait(20)
                sock.sendall(piece)

        threading.Thread(target=serve, daemon=True).start()
        with (
            proxied(at(listener.getsockname()[1]), tmp_path / "root") as through,
            socket.create_connection(("127.0.0.1", through.port), 20) as client,
        ):
            client.sendall(chat(stream=True))
            got = b""
            while got.count(piece) < 1:
                got += client.recv(1000)
            go_on.set()
            while part := client.recv(1000):
                got += part
    assert got.count(piece) == 2
    assert through.events.kind("response")[0]["message"]["content"] == "aa"


def test_the_true_key_is_put_in_and_the_agents_own_never_arrives(tmp_path):
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with listening(ok) as (port, came):
        server = at(port)
        server.api_key = "true-key"
        with proxied(server, tmp_path / "root") as through:
            exchange(through.port, post("/v1/chat/completions", b"{}", "Authorization: Bearer called-shot"))
    assert came[0].count(b"Authorization") == 1
    assert b"Authorization: Bearer true-key\r\n" in came[0]


def test_an_expectation_is_met_by_the_proxy(double, tmp_path):
    body = json.dumps({"messages": HI}).encode()
    with (
        proxied(double(), tmp_path / "root") as through,
        socket.create_connection(("127.0.0.1", through.port), 20) as client,
    ):
        client.sendall(
            post("/v1/chat/completions", b"", "Expect: 100-continue").replace(b"Length: 0", b"Length: %d" % len(body))
        )
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(body)
        assert client.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "request_line",
    [
        "POST /completion",
        "POST /v1/completions",
        "POST /slots/0?action=erase",
        "POST /props",
        "POST /v1/messages",
        "DELETE /x",
    ],
)
def test_what_would_touch_the_slot_unseen_is_refused_and_noted(double, tmp_path, request_line):
    with proxied(double(), tmp_path / "root") as through:
        answer = exchange(through.port, f"{request_line} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert error["type"] == "not_recorded"
    (note,) = through.events.kind("note")
    assert note["kind"] == "refused_endpoint"
    assert request_line.split("?")[0] in note["text"]
    assert not through.events.kind("request")


def test_a_request_over_the_limit_gets_a_clear_error(double, tmp_path):
    with proxied(double(), tmp_path / "root", max_steps=2) as through:
        answers = [exchange(through.port, chat()) for _ in range(4)]
    assert [a[9:12] for a in answers] == [b"200", b"200", b"403", b"403"]
    assert "agent.max_steps" in json.loads(answers[3].partition(b"\r\n\r\n")[2])["error"]["message"]
    assert (len(through.events.kind("request")), through.recorder.refused) == (2, 2)


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]
)
def test_what_is_no_http_is_answered_and_the_proxy_goes_on(double, tmp_path, garbage):
    with proxied(double(), tmp_path / "root") as through:
        assert exchange(through.port, garbage + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert exchange(through.port, chat()).startswith(b"HTTP/1.1 200 ")


def test_requests_at_the_same_time_are_recorded_whole(double, tmp_path):
    with proxied(double(), tmp_path / "root") as through:
        threads = [
            threading.Thread(target=exchange, args=(through.port, chat(seed=n, stream=n % 2 == 0))) for n in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    events = through.events
    assert [e["step"] for e in events.kind("request")] == list(range(16))
    assert sorted(e["step"] for e in events.kind("response")) == list(range(16))
    assert {e["params"]["seed"] for e in events.kind("request")} == set(range(16))


def test_the_digest_is_that_of_the_body(double, tmp_path):
    body = json.dumps({"messages": HI}).encode()
    with proxied(double(), tmp_path / "root") as through:
        exchange(through.port, chunked(body))
    assert through.events.kind("request")[0]["sha256"] == hashlib.sha256(body).hexdigest()


def test_closing_ends_connections_that_do_nothing(double, tmp_path):
    began = time.monotonic()
    with proxied(double(), tmp_path / "root") as through:
        idle = [socket.create_connection(("127.0.0.1", through.port)) for _ in range(5)]
        exchange(through.port, chat())
    assert time.monotonic() - began < 9
    for sock in idle:
        assert sock.recv(1) == b""
        sock.close()


def port_of(server) -> int:
    return int(server.base_url.rsplit(":", 1)[1])
