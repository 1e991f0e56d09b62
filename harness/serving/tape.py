"""Real traffic on record, and a client without a server that replays it.

`tape.jsonl`: a first line with what was known of the server, then one line per HTTP request in order:

| field | content |
|---|---|
| `n` | 0, 1, … |
| `method`, `path` | as sent; the path with its query |
| `sha256`, `body` | of the exact body bytes; the body as text |
| `status`, `headers` | of the answer (the headers that say how to read it); null and {} when none came |
| `response` or `response_base64` | the answer's raw bytes, as text where they are UTF-8 |
| `error` | {type, message} when the connection failed, else null |
| `ms` | the request's time |

A replay gives the n-th request the n-th answer and its recorded time, so the same settings give the same events, times
of our own work aside. A request that is not the recorded one gets an error that names the first difference, and the
tape does not advance.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from harness.serving.client import MS_EXTENSION
from harness.serving.errors import ServingError
from harness.serving.local import check_window
from harness.serving.running import RunningServer
from harness.settings import ServerSettings

VERSION = 1
TAPE = "tape.jsonl"
TAPE_URL = "http://tape.invalid"
KEPT_HEADERS = ("content-type", "content-encoding", "retry-after")


class TapeMismatchError(httpx.TransportError):
    """A replayed run asked something else than the recorded one."""

    type = "tape_mismatch"


class RecordingTransport(httpx.BaseTransport):
    """Passes requests on and writes each with its answer to a new tape."""

    def __init__(self, path: Path, server: RunningServer, inner: httpx.BaseTransport | None = None) -> None:
        self._inner = inner or httpx.HTTPTransport()
        self._file = path.open("w", encoding="utf-8")
        self._count = 0
        known = {k: getattr(server, k) for k in ("kind", "build", "n_ctx", "props", "cold", "request_extra")}
        self._write({"v": VERSION, "server": known})

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        status, headers, raw, failure = None, {}, b"", None
        start = time.perf_counter()
        try:
            response = self._inner.handle_request(request)
            status = response.status_code
            headers = {k: v for k in KEPT_HEADERS if (v := response.headers.get(k)) is not None}
            assert isinstance(response.stream, httpx.SyncByteStream)
            for chunk in response.stream:
                raw += chunk
            response.close()
        except httpx.TransportError as e:
            failure = e
        ms = (time.perf_counter() - start) * 1000
        self._write(
            {
                "n": self._count,
                "method": request.method,
                "path": request.url.raw_path.decode(),
                "sha256": hashlib.sha256(body).hexdigest(),
                "body": body.decode("utf-8", "replace"),
                "status": status,
                "headers": headers,
                **_as_text(raw),
                "error": failure and {"type": type(failure).__name__, "message": str(failure)},
                "ms": ms,
            }
        )
        self._count += 1
        return _answer(status, headers, raw, failure, ms)

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._inner.close()
        self._file.close()


class ReplayTransport(httpx.BaseTransport):
    """Answers from a tape, in its order."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._entries = entries
        self._next = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body, path = request.read(), request.url.raw_path.decode()
        number = self._next
        if number >= len(self._entries):
            raise TapeMismatchError(f"tape: request {number} is not on the tape, which ends after {number}")
        entry = self._entries[number]
        if (request.method, path) != (entry["method"], entry["path"]):
            raise TapeMismatchError(
                f"tape: request {number} is {request.method} {path}, on the tape {entry['method']} {entry['path']}"
            )
        if hashlib.sha256(body).hexdigest() != entry["sha256"]:
            where = first_difference(_json(entry["body"]), _json(body.decode("utf-8", "replace"))) or "the body's bytes"
            raise TapeMismatchError(f"tape: request {number} differs from the recorded one at {where}")
        self._next += 1
        error = entry["error"]
        failure = None if error is None else _failure(error)
        return _answer(entry["status"], entry["headers"], _as_bytes(entry), failure, entry["ms"])


def first_difference(recorded: Any, sent: Any, where: str = "") -> str | None:
    """Where two JSON values differ first, as a path like messages[2].content; None when they are equal, key order
    too."""
    if isinstance(recorded, dict) and isinstance(sent, dict):
        if list(recorded) != list(sent):
            odd = next((k for k in [*recorded, *sent] if (k in recorded) != (k in sent)), None)
            if odd is None:
                return f"the order of the keys of {where or 'the body'}"
            return f"{where}.{odd}".lstrip(".")
        pairs = [(f"{where}.{k}".lstrip("."), recorded[k], sent[k]) for k in recorded]
    elif isinstance(recorded, list) and isinstance(sent, list):
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, sent, strict=False))]
        if len(recorded) != len(sent):
            shorter = min(len(recorded), len(sent))
            inner = next((d for at, a, b in pairs if (d := first_difference(a, b, at))), None)
            return inner or f"{where}[{shorter}]"
    else:
        return None if recorded == sent and type(recorded) is type(sent) else where or "the body"
    return next((d for at, a, b in pairs if (d := first_difference(a, b, at))), None)


def read_tape(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was known of the server, and the recorded requests; `path` is the tape or its run folder."""
    path = _file(path)
    lines = _read(path).split(b"\n")
    values = []
    for number, line in enumerate(lines):
        try:
            values.append(json.loads(line))
        except ValueError as e:
            if number == len(lines) - 1:  # the end, or a line that a killed run left half written
                break
            raise ServingError(f"server.tape: {path}, line {number + 1}: not JSON") from e
    if not values or not isinstance(values[0], dict) or values[0].get("v") != VERSION:
        raise ServingError(f"server.tape: {path} is no tape of version {VERSION}")
    return values[0]["server"], values[1:]


def tape_digest(path: Path) -> str:
    """The SHA-256 of a tape's content, in hex; `path` is the tape or its run folder."""
    return hashlib.sha256(_read(_file(path))).hexdigest()


@contextmanager
def open_tape(settings: ServerSettings) -> Iterator[RunningServer]:
    """The recorded server, window and build as recorded; another window than the asked one is an error."""
    assert settings.tape is not None
    known, entries = read_tape(Path(settings.tape))
    if known["n_ctx"] is not None:
        check_window(settings.n_ctx, known["n_ctx"])
    yield RunningServer(
        kind=settings.kind,
        base_url=TAPE_URL,
        build=known["build"],
        n_ctx=known["n_ctx"],
        props=known["props"],
        cold=known["cold"],
        request_timeout_s=settings.request_timeout_s,
        request_extra=known["request_extra"],
        open_transport=lambda: ReplayTransport(entries),
    )


def _file(path: Path) -> Path:
    return path / TAPE if path.is_dir() else path


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise ServingError(f"server.tape: {path} can't be read ({e.strerror})") from e


def _answer(
    status: int | None, headers: dict[str, str], raw: bytes, failure: httpx.TransportError | None, ms: float
) -> httpx.Response:
    if failure is not None:
        setattr(failure, MS_EXTENSION, ms)
        raise failure
    assert status is not None
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(raw), extensions={MS_EXTENSION: ms})


def _failure(error: dict[str, str]) -> httpx.TransportError:
    kind = getattr(httpx, error["type"], None)
    if isinstance(kind, type) and issubclass(kind, httpx.TransportError):
        return kind(error["message"])
    return httpx.TransportError(error["message"])


def _as_text(raw: bytes) -> dict[str, str]:
    try:
        return {"response": raw.decode()}
    except UnicodeDecodeError:
        return {"response_base64": base64.b64encode(raw).decode()}


def _as_bytes(entry: dict[str, Any]) -> bytes:
    if "response_base64" in entry:
        return base64.b64decode(entry["response_base64"])
    return entry["response"].encode()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
