"""One typed outcome per request, whatever shape the server gave it.

`Reply` is a whole reply. `Cut` stopped early or could not be read: by the window, by a reply limit, or because the server
could not parse it; it keeps what arrived, and the agent version decides what to make of it. `Overflow` is a request larger
than the window. `ServerError` is everything else, connection failures included. Token counts are those of the server's own
tokenizer; what a server does not tell is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

CutKind = Literal["window", "limit", "unparsed"]
ErrorKind = Literal["http", "connect", "timeout", "malformed"]


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is the raw text, which need not be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class AssistantMessage:
    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Usage:
    """Tokens: the whole prompt (reuse included), the reply, and their sum."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


@dataclass(frozen=True)
class Timings:
    """llama-server's timings: tokens reused (cache_n), evaluated (prompt_n) and generated (predicted_n), milliseconds."""

    cache_n: int | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    predicted_n: int | None = None
    predicted_ms: float | None = None


@dataclass(frozen=True)
class Reply:
    """tokens: the reply as it was sampled, the token that ended it included; None where it was not asked for or not told."""

    message: AssistantMessage
    finish_reason: str | None
    usage: Usage | None
    timings: Timings | None
    status: int
    ms: float
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Cut:
    """kind `window`: prompt and reply reached n_ctx; `limit`: max_tokens reached first; `unparsed`: the server's 500."""

    kind: CutKind
    message: AssistantMessage | None
    finish_reason: str | None
    usage: Usage | None
    timings: Timings | None
    status: int
    ms: float
    error: str | None = None
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Overflow:
    status: int
    error: str
    prompt_tokens: int | None
    n_ctx: int | None
    ms: float


@dataclass(frozen=True)
class ServerError:
    """status is None when no HTTP answer came."""

    kind: ErrorKind
    status: int | None
    type: str | None
    error: str
    ms: float


Outcome = Reply | Cut | Overflow | ServerError
RequestTag = Literal["agent", "summary", "probe", "count"]


@dataclass(frozen=True)
class ChatRequest:
    """One chat completion request in OpenAI's form; messages and tools are plain JSON values."""

    messages: list[dict[str, Any]]
    seed: int
    temperature: float
    tools: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    response_format: dict[str, Any] | None = None
    tag: RequestTag = "agent"
    extra: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The JSON body as it is sent; keys that are not set are left out."""
        body: dict[str, Any] = {"messages": self.messages, "temperature": self.temperature, "seed": self.seed}
        if self.tools:
            body["tools"] = self.tools
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.response_format is not None:
            body["response_format"] = self.response_format
        return body | self.extra


class ModelClient(Protocol):
    """What the agent knows of a model: a request goes in, one outcome comes out, nothing is raised for a failed request."""

    def chat(self, request: ChatRequest) -> Outcome: ...
