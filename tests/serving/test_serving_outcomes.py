"""Every shape of answer, sent by a real HTTP server, becomes the outcome it means."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from answering_server import Answering, half_a_body, no_answer, reset
from hypothesis import given
from hypothesis import strategies as st

from harness.serving.classify import bad_history, classify
from harness.serving.client import ChatClient, encode, server_root
from harness.serving.errors import ServingError
from harness.serving.outcome import AssistantMessage, ChatRequest, Cut, Outcome, Overflow, Reply, ServerError

N_CTX = 2048
ASK = ChatRequest(messages=[{"role": "user", "content": "hi"}], seed=7, temperature=0.6, max_tokens=100)


@pytest.fixture
def client(answering: Answering) -> Iterator[ChatClient]:
    with ChatClient(answering.url, n_ctx=N_CTX, timeout_s=5) as client:
        yield client


def completion(
    reason: str | None, prompt: int | None = 10, generated: int | None = 5, message: Any = None, **more: Any
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "choices": [
            {"finish_reason": reason, "index": 0, "message": message or {"role": "assistant", "content": "hello"}}
        ]
    }
    if prompt is not None and generated is not None:
        body["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
            "prompt_tokens_details": {"cached_tokens": 3},
        }
    return body | more


def error(code: int, message: str, type_: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": type_} | more}


def test_a_whole_reply_keeps_message_usage_and_timings(client: ChatClient, answering: Answering) -> None:
    call = {"id": "x1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]}
    timings = {"cache_n": 9, "prompt_n": 1, "prompt_ms": 3.5, "predicted_n": 5, "predicted_ms": 20, "draft_n": 2}
    answering.chat(200, completion("tool_calls", message=message, timings=timings))
    reply = client.chat(ASK)
    assert isinstance(reply, Reply)
    assert reply.message.content is None
    assert reply.message.reasoning == "hm"
    assert [(c.id, c.name, c.arguments) for c in reply.message.tool_calls] == [("x1", "bash", '{"command": "ls"}')]
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (10, 5, 15)
    assert reply.timings is not None
    assert (reply.timings.cache_n, reply.timings.prompt_n, reply.timings.predicted_ms) == (9, 1, 20.0)
    assert reply.ms > 0


def test_what_a_server_does_not_tell_is_none(client: ChatClient, answering: Answering) -> None:
    answering.chat(200, completion("stop", prompt=None, timings=None, usage=None))
    reply = client.chat(ASK)
    assert isinstance(reply, Reply)
    assert (reply.usage, reply.timings) == (None, None)


def test_odd_but_readable_messages(client: ChatClient, answering: Answering) -> None:
    message = {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "reasoning": "because",
        "tool_calls": [{"function": {"name": "f", "arguments": {"k": 1}}}, {"function": {"name": "g"}}, "nonsense"],
    }
    answering.chat(200, completion("stop", message=message))
    reply = client.chat(ASK)
    assert isinstance(reply, Reply)
    assert (reply.message.content, reply.message.reasoning) == ("ab", "because")
    assert [(c.id, c.name, c.arguments) for c in reply.message.tool_calls] == [
        ("call_0", "f", '{"k": 1}'),
        ("call_1", "g", ""),
        ("call_2", "", ""),
    ]


@pytest.mark.parametrize(
    ("prompt", "generated", "max_tokens", "n_ctx", "kind"),
    [
        (1720, 328, None, 2048, "window"),
        (1720, 328, 4096, 2048, "window"),
        (1720, 100, 100, 2048, "limit"),
        (1948, 100, 100, 2048, "window"),  # both ends at once: the window is full
        (1720, 100, None, 2048, "limit"),  # a limit of the server's own
        (1720, 100, 100, None, "limit"),
        (1720, 99, 100, None, "window"),
        (1720, 328, None, None, "window"),
        (None, None, None, 2048, "window"),
        (None, None, 100, 2048, "limit"),
    ],
)
def test_a_length_cut_is_by_the_window_or_by_the_limit(
    answering: Answering,
    prompt: int | None,
    generated: int | None,
    max_tokens: int | None,
    n_ctx: int | None,
    kind: str,
) -> None:
    answering.chat(200, completion("length", prompt, generated))
    with ChatClient(answering.url, n_ctx=n_ctx) as client:
        cut = client.chat(ChatRequest([{"role": "user", "content": "x"}], 1, 0.0, max_tokens=max_tokens))
    assert isinstance(cut, Cut)
    assert (cut.kind, cut.status, cut.finish_reason) == (kind, 200, "length")
    assert cut.message is not None
    assert cut.message.content == "hello"


def test_a_length_cut_without_usage_goes_by_the_timings(client: ChatClient, answering: Answering) -> None:
    timings = {"cache_n": 1000, "prompt_n": 720, "predicted_n": 328}
    answering.chat(200, completion("length", None, None, timings=timings))
    cut = client.chat(ASK)
    assert isinstance(cut, Cut)
    assert cut.kind == "window"


def test_a_cut_reply_without_a_message_is_still_a_cut(client: ChatClient, answering: Answering) -> None:
    answering.chat(200, {"choices": [{"finish_reason": "length", "message": None}], "usage": {"prompt_tokens": 2040}})
    cut = client.chat(ASK)
    assert isinstance(cut, Cut)
    assert cut.message is None


OLD = "the request exceeds the available context size. try increasing the context size or enable context shift"


@pytest.mark.parametrize(
    ("status", "body", "prompt", "n_ctx"),
    [
        (400, error(400, OLD, "invalid_request_error"), None, None),
        (400, error(400, OLD, "server_error"), None, None),
        (400, error(400, OLD, "exceed_context_size_error", n_prompt_tokens=6409, n_ctx=2048), 6409, 2048),
        (400, error(400, "the request exceeds the available context size, try increasing it", "x"), None, None),
        (
            400,
            error(
                400,
                "request (6409 tokens) exceeds the available context size (2048 tokens), try increasing it",
                "exceed_context_size_error",
                n_prompt_tokens=6409,
                n_ctx=2048,
            ),
            6409,
            2048,
        ),
        (
            400,
            error(
                400, "request (6409 tokens) exceeds the available context size (2048 tokens), try increasing it", "y"
            ),
            6409,
            2048,
        ),
        (500, error(500, "Context size has been exceeded.", "server_error"), None, None),
        (500, error(500, "context shift is disabled", "server_error"), None, None),
        (200, error(400, OLD, "exceed_context_size_error", n_prompt_tokens=3, n_ctx=2), 3, 2),
        (
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens "
                "(9591 in the messages, 10000 in the completion).",
                "type": "BadRequestError",
                "code": 400,
            },
            9591,
            16384,
        ),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, None, None),
        (
            400,
            {
                "error": "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded "
                "with context length of only 32768 tokens, which is not enough."
            },
            111490,
            32768,
        ),
    ],
)
def test_an_overflow_in_every_wording(
    client: ChatClient, answering: Answering, status: int, body: Any, prompt: int | None, n_ctx: int | None
) -> None:
    answering.chat(status, body)
    outcome = client.chat(ASK)
    assert isinstance(outcome, Overflow)
    assert (outcome.status, outcome.prompt_tokens, outcome.n_ctx) == (status, prompt, n_ctx)


@pytest.mark.parametrize(
    ("text", "history"),
    [
        ('Failed to parse input at pos 41: {"name": "write_file", "argu', False),
        ("The model produced output that does not match the expected peg-native format", False),
        ("Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error", True),
    ],
)
def test_a_parse_failure_is_an_unparsed_cut(client: ChatClient, answering: Answering, text: str, history: bool) -> None:
    answering.chat(500, error(500, text, "server_error"))
    cut = client.chat(ASK)
    assert isinstance(cut, Cut)
    assert (cut.kind, cut.message, cut.status, cut.error) == ("unparsed", None, 500, text)
    assert bad_history(cut) is history


@pytest.mark.parametrize(
    ("status", "body", "type_", "text"),
    [
        (400, error(400, "Failed to parse grammar", "invalid_request_error"), "invalid_request_error", "grammar"),
        (
            400,
            error(400, "Failed to initialize samplers: x", "invalid_request_error"),
            "invalid_request_error",
            "sampl",
        ),
        (401, error(401, "Invalid API Key", "authentication_error"), "authentication_error", "Invalid API Key"),
        (503, error(503, "Loading model", "unavailable_error"), "unavailable_error", "Loading model"),
        (501, error(501, "This server does not support it.", "not_supported_error"), "not_supported_error", "support"),
        (500, error(500, "Compute error.", "server_error"), "server_error", "Compute error."),
        (404, {"detail": "Not Found"}, None, "Not Found"),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, None, "field required"),
        (502, b"<html>Bad Gateway</html>", None, "Bad Gateway"),
        (500, b"", None, "HTTP 500"),
        (500, ["odd"], None, "odd"),
        (200, error(500, "Compute error.", "server_error"), "server_error", "Compute error."),
    ],
)
def test_other_errors_keep_status_type_and_text(
    client: ChatClient, answering: Answering, status: int, body: Any, type_: str | None, text: str
) -> None:
    answering.chat(status, body)
    outcome = client.chat(ASK)
    assert isinstance(outcome, ServerError)
    assert (outcome.kind, outcome.status, outcome.type) == ("http", status, type_)
    assert text in outcome.error


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"",
        b'{"choices": [',
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b"[" * 100_000,
    ],
)
def test_an_unreadable_200_is_malformed(client: ChatClient, answering: Answering, body: bytes) -> None:
    answering.chat(200, body)
    outcome = client.chat(ASK)
    assert isinstance(outcome, ServerError)
    assert (outcome.kind, outcome.status) == ("malformed", 200)


@pytest.mark.parametrize(("act", "kind"), [(half_a_body, "malformed"), (no_answer, "connect"), (reset, "connect")])
def test_a_broken_connection(client: ChatClient, answering: Answering, act: Any, kind: str) -> None:
    answering.chat_act(act)
    outcome = client.chat(ASK)
    assert isinstance(outcome, ServerError)
    assert (outcome.kind, outcome.status) == (kind, None)
    assert outcome.error


def test_nobody_there_is_a_connect_error() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound but not listening: refused
        with ChatClient(f"http://127.0.0.1:{s.getsockname()[1]}") as client:
            outcome = client.chat(ASK)
            assert isinstance(outcome, ServerError)
            assert outcome.kind == "connect"
            assert (client.health(), client.props(), client.slots(), client.tokenize("x")) == (None,) * 4
            assert client.erase(0) is False


def test_silence_is_a_timeout() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()  # connects, and never answers
        with ChatClient(f"http://127.0.0.1:{s.getsockname()[1]}", timeout_s=0.1) as client:
            outcome = client.chat(ASK)
    assert isinstance(outcome, ServerError)
    assert outcome.kind == "timeout"


def test_the_bytes_sent_are_the_encoded_body(client: ChatClient, answering: Answering) -> None:
    answering.chat(200, completion("stop"))
    schema = {"type": "object", "properties": {"thought": {"type": "string"}, "action": {"type": "string"}}}
    request = ChatRequest(
        messages=[{"role": "user", "content": "ä \u2028 \ud83d\ude00 \ud800"}],
        seed=1,
        temperature=0.0,
        response_format={"type": "json_schema", "json_schema": {"schema": schema}},
        extra={"cache_prompt": True},
    )
    client.chat(request)
    sent = answering.asked[0][2]
    assert sent == encode(request.body())
    # The schema's properties keep their order: the grammar asks for the thought first.
    assert list(json.loads(sent)["response_format"]["json_schema"]["schema"]["properties"]) == ["thought", "action"]
    assert json.loads(sent)["messages"][0]["content"].endswith("\ufffd")


def test_the_key_travels_in_the_header_and_proxies_stay_out(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    answering.chat(200, completion("stop"))
    with ChatClient(answering.url + "/v1/", api_key="s3cret") as client:
        assert isinstance(client.chat(ASK), Reply)
    assert answering.headers[0]["Authorization"] == "Bearer s3cret"


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "http://x:port", ""])
def test_what_is_no_address_is_said_in_one_line(url: str) -> None:
    with pytest.raises(ServingError, match=r"^server\.url: .*$"):
        server_root(url)


def test_compressed_answers_are_read(client: ChatClient, answering: Answering) -> None:
    raw = gzip.compress(json.dumps(completion("stop")).encode())

    def act(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    answering.chat_act(act)
    assert isinstance(client.chat(ASK), Reply)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "1" * 400, "true", '"3"'])
def test_numbers_that_are_none(client: ChatClient, answering: Answering, number: str) -> None:
    body = json.dumps(completion("stop", timings={"prompt_ms": 0, "predicted_ms": 2.5}))
    answering.chat(200, body.replace('"prompt_ms": 0', f'"prompt_ms": {number}').encode())
    reply = client.chat(ASK)
    assert isinstance(reply, Reply)
    assert reply.timings is not None
    assert (reply.timings.prompt_ms, reply.timings.predicted_ms) == (None, 2.5)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "finish_reason": st.sampled_from(["stop", "length", "tool_calls", "model_length"]) | JSON,
        "logprobs": JSON
        | st.fixed_dictionaries(
            {"content": JSON | st.lists(st.fixed_dictionaries({}, optional={"id": JSON}), max_size=3)}
        ),
        "message": JSON
        | st.fixed_dictionaries({}, optional={"content": JSON, "tool_calls": JSON, "reasoning_content": JSON}),
    },
)
ANSWER = JSON | st.fixed_dictionaries(
    {},
    optional={
        "choices": JSON | st.lists(CHOICE, max_size=2),
        "usage": JSON | st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens"]), JSON),
        "timings": JSON | st.dictionaries(st.sampled_from(["cache_n", "prompt_n", "predicted_n", "prompt_ms"]), JSON),
        "error": JSON | st.fixed_dictionaries({}, optional={"message": JSON, "type": JSON, "code": JSON}),
    },
)


@pytest.mark.parametrize(
    ("logprobs", "tokens"),
    [
        ({"content": [{"id": 73594, "token": "```", "logprob": -0.05}, {"id": 0, "token": "!"}]}, (73594, 0)),
        ({"content": [{"token": "```", "logprob": -0.05}]}, None),  # OpenAI's own form
        ({"content": [{"id": 5}, {"token": "x"}]}, None),
        ({"content": []}, None),
        ({"content": None}, None),
        (None, None),
    ],
)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_the_reply_s_tokens(logprobs: Any, tokens: tuple[int, ...] | None, finish: str) -> None:
    choice = {"finish_reason": finish, "message": {"content": "x"}, "logprobs": logprobs}
    outcome = classify(ASK, 200, json.dumps({"choices": [choice]}).encode(), 1.0, 4096)
    assert isinstance(outcome, (Reply, Cut))
    assert outcome.tokens == tokens


@given(status=st.sampled_from([200, 400, 401, 500, 503]), answer=ANSWER, n_ctx=st.none() | st.integers(1, 4096))
def test_any_json_at_all_has_an_outcome(status: int, answer: Any, n_ctx: int | None) -> None:
    outcome: Outcome = classify(ASK, status, json.dumps(answer).encode(), 1.0, n_ctx)
    if isinstance(outcome, Reply):
        assert status == 200
        assert isinstance(outcome.message, AssistantMessage)
        assert outcome.finish_reason != "length"
        for text in (outcome.message.content, outcome.message.reasoning):
            assert text is None or isinstance(text, str)
    elif isinstance(outcome, (ServerError, Overflow)):
        assert isinstance(outcome.error, str)
    assert outcome.status == status


@given(st.binary(max_size=60), st.sampled_from([200, 400, 500]))
def test_any_bytes_at_all_have_an_outcome(body: bytes, status: int) -> None:
    assert isinstance(classify(ASK, status, body, 1.0, None), (ServerError, Overflow))
