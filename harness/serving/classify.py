"""What an HTTP answer to a chat completion means: Reply, Cut, Overflow or ServerError.

Pure: status, body and the request go in, one outcome comes out, whatever shape the body has. Rules that need a word:

- `finish_reason: length` is a cut by the window when prompt and reply fill n_ctx, else by the reply limit. Where a
  server tells no counts, a request without a limit can only have been cut by the window.
- A 400 that says the request does not fit is an overflow under every type and wording llama-server and other servers
  have used, an error under status 200 included; so is a 500 "context size has been exceeded", which ends a request
  whose slot filled up while it ran.
- A 500 "Failed to parse …" is an unparsed cut, as the published client counted it. "Failed to parse tool call
  arguments" comes from the history that was sent, not from the reply: same outcome, told apart by `bad_history(cut)`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness.serving.outcome import (
    AssistantMessage,
    ChatRequest,
    Cut,
    CutKind,
    Outcome,
    Overflow,
    Reply,
    ServerError,
    Timings,
    ToolCall,
    Usage,
)

ERROR_CHARS = 2000
_LARGE = 1e15
_OVERFLOW_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_OVERFLOW_TEXT = re.compile(
    r"exceeds? the available context size|maximum context length|context_length_exceeded|context length exceeded"
    r"|context the overflows|context size has been exceeded|context shift is disabled",
    re.I,
)
_UNPARSED = re.compile(r"failed to parse|produced output that does not match the expected .* format", re.I | re.S)
_BAD_HISTORY = re.compile(r"failed to parse tool call arguments", re.I)
_LLAMA_COUNTS = re.compile(r"request \((\d+) tokens\) exceeds the available context size \((\d+) tokens\)")
_OTHER_WINDOW = re.compile(r"maximum context length (?:is|of) (?:only )?(\d+)|context length of (?:only )?(\d+)", re.I)
_OTHER_PROMPT = re.compile(r"\((\d+) in the messages|(?:your request has|resulted in|keep the first) (\d+)", re.I)


def bad_history(cut: Cut) -> bool:
    """Whether an unparsed cut was caused by call arguments in the history that are not JSON (it will come back every
    time)."""
    return cut.kind == "unparsed" and bool(_BAD_HISTORY.search(cut.error or ""))


def classify(request: ChatRequest, status: int, body: bytes, ms: float, n_ctx: int | None) -> Outcome:
    """The outcome of one answered request. n_ctx: the slot's window in tokens, None when unknown; ms: the request's
    time."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):  # bytes that are no UTF-8 and endless nesting included
        text = body.decode("utf-8", "replace").strip()[:ERROR_CHARS]
        if status == 200:
            return ServerError("malformed", status, None, f"the answer is not JSON: {text!r}", ms)
        return _failure(status, None, text or f"HTTP {status} without a text", {}, ms)
    if status == 200 and isinstance(answer, dict):
        choices = answer.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return _answered(request, choices[0], answer, status, ms, n_ctx)
    kind, said, fields = _error(answer)
    if said is not None:
        return _failure(status, kind, said[:ERROR_CHARS], fields, ms)
    shown = body.decode("utf-8", "replace").strip()[:ERROR_CHARS]
    if status == 200:
        return ServerError("malformed", status, None, f"the answer has no choices: {shown!r}", ms)
    return _failure(status, None, shown, {}, ms)


def _answered(
    request: ChatRequest, choice: dict[str, Any], answer: dict[str, Any], status: int, ms: float, n_ctx: int | None
) -> Outcome:
    reason = choice.get("finish_reason")
    reason = reason if isinstance(reason, str) else None
    message, usage, timings = _message(choice.get("message")), _usage(answer), _timings(answer)
    if message is None and reason not in ("length", "model_length"):
        return ServerError("malformed", status, None, "the answer's choice has no message", ms)
    if reason in ("length", "model_length"):
        kind: CutKind = "window" if reason == "model_length" else _cut_by(request, usage, timings, n_ctx)
        return Cut(kind, message, reason, usage, timings, status, ms, tokens=_tokens(choice))
    assert message is not None
    return Reply(message, reason, usage, timings, status, ms, _tokens(choice))


def _cut_by(request: ChatRequest, usage: Usage | None, timings: Timings | None, n_ctx: int | None) -> CutKind:
    limit = _limit(request)
    prompt = usage.prompt_tokens if usage else None
    if prompt is None and timings and timings.cache_n is not None and timings.prompt_n is not None:
        prompt = timings.cache_n + timings.prompt_n
    generated = usage.completion_tokens if usage else None
    if generated is None and timings:
        generated = timings.predicted_n
    if n_ctx is not None and prompt is not None and generated is not None:
        # llama-server stops when the slot holds n_ctx - 1 tokens and counts the last sampled one as generated too.
        return "window" if prompt + generated >= n_ctx else "limit"
    if limit is None:
        return "window"
    return "window" if generated is not None and generated < limit else "limit"


def _limit(request: ChatRequest) -> int | None:
    body = request.body()
    for key in ("max_tokens", "max_completion_tokens", "n_predict"):
        if isinstance(body.get(key), int) and body[key] >= 0:
            return body[key]
    return None


def _failure(status: int, kind: str | None, text: str, fields: dict[str, Any], ms: float) -> Outcome:
    too_large = kind in _OVERFLOW_TYPES or _text(fields.get("code")) in _OVERFLOW_TYPES or _OVERFLOW_TEXT.search(text)
    if too_large:
        prompt, n_ctx = _overflow_counts(text, fields)
        return Overflow(status, text, prompt, n_ctx, ms)
    if status == 500 and _UNPARSED.search(text):
        return Cut("unparsed", None, None, None, None, status, ms, text)
    return ServerError("http", status, kind, text, ms)


def _overflow_counts(text: str, fields: dict[str, Any]) -> tuple[int | None, int | None]:
    prompt, n_ctx = _int(fields.get("n_prompt_tokens")), _int(fields.get("n_ctx"))
    if found := _LLAMA_COUNTS.search(text):
        prompt, n_ctx = prompt or int(found[1]), n_ctx or int(found[2])
    if n_ctx is None and (found := _OTHER_WINDOW.search(text)):
        n_ctx = int(found[1] or found[2])
        asked = _OTHER_PROMPT.search(text)
        prompt = int(asked[1] or asked[2]) if prompt is None and asked else prompt
    return prompt, n_ctx


def _error(answer: Any) -> tuple[str | None, str | None, dict[str, Any]]:
    """Type, text and fields of an error body: llama-server's and OpenAI's form, a bare text, FastAPI's `detail`."""
    if not isinstance(answer, dict):
        return None, None, {}
    error = answer.get("error")
    if isinstance(error, dict):
        text = error.get("message")
        return _text(error.get("type")), text if isinstance(text, str) else json.dumps(error), error
    if isinstance(error, str):
        return None, error, answer
    for key in ("message", "detail"):
        value = answer.get(key)
        if value:
            return _text(answer.get("type")), value if isinstance(value, str) else json.dumps(value), answer
    return None, None, {}


def _message(value: Any) -> AssistantMessage | None:
    if not isinstance(value, dict):
        return None
    reasoning = value.get("reasoning_content")
    if not isinstance(reasoning, str):
        reasoning = _text(value.get("reasoning"))
    calls = value.get("tool_calls")
    return AssistantMessage(
        content=_content(value.get("content")),
        reasoning=reasoning,
        tool_calls=tuple(_call(i, c) for i, c in enumerate(calls)) if isinstance(calls, list) else (),
    )


def _content(value: Any) -> str | None:
    if isinstance(value, list):
        parts = [p.get("text") for p in value if isinstance(p, dict)]
        return "".join(p for p in parts if isinstance(p, str))
    return _text(value)


def _call(number: int, value: Any) -> ToolCall:
    value = value if isinstance(value, dict) else {}
    function = value.get("function") if isinstance(value.get("function"), dict) else {}
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):  # some servers send the object instead of its text
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(_text(value.get("id")) or f"call_{number}", _text(function.get("name")) or "", arguments)


def _tokens(choice: dict[str, Any]) -> tuple[int, ...] | None:
    """The ids that llama-server puts beside log probabilities (OpenAI's own form has none); None unless every token has one."""
    logprobs = choice.get("logprobs")
    rows = logprobs.get("content") if isinstance(logprobs, dict) else None
    ids = [_int(row.get("id")) if isinstance(row, dict) else None for row in rows] if isinstance(rows, list) else []
    told = tuple(i for i in ids if i is not None)
    return told if told and len(told) == len(ids) else None


def _usage(answer: dict[str, Any]) -> Usage | None:
    value = answer.get("usage")
    if not isinstance(value, dict):
        return None
    return Usage(*(_int(value.get(k)) for k in ("prompt_tokens", "completion_tokens", "total_tokens")))


def _timings(answer: dict[str, Any]) -> Timings | None:
    value = answer.get("timings")
    if not isinstance(value, dict):
        return None
    return Timings(
        cache_n=_int(value.get("cache_n")),
        prompt_n=_int(value.get("prompt_n")),
        prompt_ms=_float(value.get("prompt_ms")),
        predicted_n=_int(value.get("predicted_n")),
        predicted_ms=_float(value.get("predicted_ms")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < _LARGE:
        return None  # NaN and infinities, which JSON has no word for, included
    return float(value)
