"""The one HTTP client: chat completions as outcomes, and llama-server's other endpoints.

`chat` never raises for a failed request. The other calls answer None where the server does not offer them (another
server than llama-server, an endpoint switched off, no connection): what a server can't tell is not known, never an
error. The bytes of a request body are `encode(request.body())`, so a digest of them can be checked from the record.
"""

from __future__ import annotations

import json
import time
from typing import Any

import httpx

from harness.serving.classify import classify
from harness.serving.errors import ServingError
from harness.serving.outcome import ChatRequest, Outcome, ServerError

CHAT = "/v1/chat/completions"
# Tells the double, and whoever reads the traffic, which requests are the agent's own.
TAG_HEADER = "X-Called-Shot-Tag"
# Set by a transport that knows the time a request took better than the client: the tape's, when it is replayed.
MS_EXTENSION = "called_shot_ms"
CONNECT_TIMEOUT_S = 10.0
SHORT_TIMEOUT_S = 60.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def encode(body: dict[str, Any]) -> bytes:
    """The exact bytes of a request body: UTF-8 JSON without blanks, the outermost keys sorted.

    The order inside (messages, tool schemas, response_format) is kept: a chat template prints tools in the order of
    their keys and a grammar made from a schema asks for its properties in that order, so sorting them would change
    what the model sees. A lone surrogate, which UTF-8 can't carry, becomes U+FFFD.
    """
    text = json.dumps(dict(sorted(body.items())), separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def server_root(url: str) -> str:
    """A server's address without a trailing `/` or `/v1`; raises ServingError for what is no http address."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as e:
        raise ServingError(f"server.url: {url!r} is no address ({e})") from e
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ServingError(f"server.url: {url!r} is no http address; write it like http://127.0.0.1:8080")
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


class ChatClient:
    """One connection pool to one server; a ModelClient.

    n_ctx: the slot's window in tokens (read back), None when unknown. timeout_s bounds one chat request: the wait for
    its answer, which a server that does not stream sends in one piece.
    """

    def __init__(
        self,
        base_url: str,
        *,
        n_ctx: int | None = None,
        api_key: str | None = None,
        timeout_s: float = 1800.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = server_root(base_url)
        self.n_ctx = n_ctx
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise ServingError("server.api_key: holds characters that no key has (a line end, an accent)")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        local = httpx.URL(base_url).host in LOOPBACK  # where a proxy of the environment has no business
        self._http = httpx.Client(headers=headers, transport=transport, trust_env=not local)
        self._timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))

    def chat(self, request: ChatRequest) -> Outcome:
        """Sends one chat completion and waits for the whole answer."""
        content = encode(request.body())
        start = time.perf_counter()
        try:
            response = self._http.post(
                self.base_url + CHAT,
                content=content,
                headers={"Content-Type": "application/json", TAG_HEADER: request.tag},
                timeout=self._timeout,
            )
        except httpx.HTTPError as e:
            return _failed(e, getattr(e, MS_EXTENSION, _since(start)))
        ms = response.extensions.get(MS_EXTENSION, _since(start))
        return classify(request, response.status_code, response.content, ms, self.n_ctx)

    def tokenize(self, text: str, *, add_special: bool = False) -> list[int] | None:
        """The tokens of a text by the server's own tokenizer; special tokens in the text are read as such."""
        answer = self._json("POST", "/tokenize", {"content": text, "add_special": add_special, "parse_special": True})
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        return tokens if isinstance(tokens, list) and all(isinstance(t, int) for t in tokens) else None

    def apply_template(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> str | None:
        """The text the chat template makes of a conversation (nothing is evaluated, the slot is untouched)."""
        answer = self._json("POST", "/apply-template", {"messages": messages} | ({"tools": tools} if tools else {}))
        prompt = answer.get("prompt") if isinstance(answer, dict) else None
        return prompt if isinstance(prompt, str) else None

    def props(self) -> dict[str, Any] | None:
        answer = self._json("GET", "/props")
        return answer if isinstance(answer, dict) else None

    def slots(self) -> list[dict[str, Any]] | None:
        answer = self._json("GET", "/slots")
        return answer if isinstance(answer, list) else None

    def models(self) -> list[dict[str, Any]] | None:
        """What `/v1/models` lists; every OpenAI-compatible server has it."""
        answer = self._json("GET", "/v1/models")
        data = answer.get("data") if isinstance(answer, dict) else None
        return [m for m in data if isinstance(m, dict)] if isinstance(data, list) else None

    def erase(self, slot: int = 0) -> bool:
        """Empties a slot's cache; False where the server can't."""
        answer = self._json("POST", f"/slots/{slot}?action=erase", {})
        return isinstance(answer, dict) and "n_erased" in answer

    def status(self, path: str) -> int | None:
        """The status of a GET, None without a connection."""
        try:
            return self._http.get(self.base_url + path, timeout=SHORT_TIMEOUT_S).status_code
        except httpx.HTTPError:
            return None

    def health(self) -> int | None:
        """The status of /health: 200 ready, 503 loading, 404 not offered; None without a connection."""
        return self.status("/health")

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        content = None if body is None else encode(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._http.request(
                method, self.base_url + path, content=content, headers=headers, timeout=SHORT_TIMEOUT_S
            )
            return response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000


def _failed(error: httpx.HTTPError, ms: float) -> ServerError:
    kind = getattr(error, "type", None)  # a transport that knows what is wrong says it in plain words
    if kind is not None:
        return ServerError("malformed", None, kind, str(error), ms)
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, httpx.TimeoutException):
        return ServerError("timeout", None, None, text, ms)
    if isinstance(error, httpx.RemoteProtocolError) and "without sending a response" not in str(error):
        return ServerError("malformed", None, None, text, ms)
    if isinstance(error, httpx.DecodingError):
        return ServerError("malformed", None, None, text, ms)
    return ServerError("connect", None, None, text, ms)
