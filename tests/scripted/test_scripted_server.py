"""The double over HTTP: accounting, failures, log."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from analysis.server_log import parse as parse_log
from harness.serving.outcome import ChatRequest, Cut, Overflow, Reply, ServerError
from harness.serving.scripted import template
from harness.serving.scripted.failures import FAILURES
from harness.serving.scripted.tokenizer import tokenize

from .conftest import TOOLS, Double, tool, user

Play = Callable[..., Double]
SAY = {"steps": [{"say": "The answer is here.", "repeat": "forever"}]}


def prompt_of(messages: list[dict[str, Any]]) -> list[int]:
    return tokenize(template.render({"messages": messages, "tools": TOOLS}))


def common(a: list[int], b: list[int]) -> int:
    return next((n for n, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b)))


def test_a_growing_conversation_is_reused_and_a_change_is_not(play: Play) -> None:
    double = play(SAY)
    messages = [user("one two three")]
    first = double.ask(messages)
    size = len(prompt_of(messages))
    assert first["timings"]["cache_n"] == 0
    assert first["timings"]["prompt_n"] == size
    generated = first["usage"]["completion_tokens"]
    messages += [first["choices"][0]["message"], user("and now")]
    second = double.ask(messages)
    assert second["timings"]["cache_n"] == size + generated - 1
    again = double.ask(messages)
    assert again["timings"]["prompt_n"] == 1
    changed = double.ask([user("one two four"), *messages[1:]])
    same = common(prompt_of([user("one two three")]), prompt_of([user("one two four")]))
    assert changed["timings"]["cache_n"] == same
    assert double.http.post("/slots/0?action=erase").json()["n_erased"] > 0
    assert double.ask(messages)["timings"]["cache_n"] == 0


def test_reuse_is_the_longest_common_beginning(play: Play) -> None:
    """Random conversations against an independent count."""
    double = play(SAY, n_ctx=100_000)
    rng = random.Random(1)
    held: list[int] = []
    messages: list[dict[str, Any]] = [user("begin")]
    for _ in range(40):
        answer = double.ask(messages)
        prompt = prompt_of(messages)
        assert answer["timings"]["cache_n"] == min(common(prompt, held), len(prompt) - 1)
        assert (
            answer["timings"]["cache_n"] + answer["timings"]["prompt_n"]
            == answer["usage"]["prompt_tokens"]
            == len(prompt)
        )
        held = prompt + tokenize("The answer is here.")
        assert double.http.get("/slots").json()[0]["n_prompt_tokens"] == len(held)
        messages = [*messages, answer["choices"][0]["message"], user(f"turn {rng.random()}")]
        if rng.random() < 0.3:
            messages[rng.randrange(len(messages))] = user("[cleared]")
        if rng.random() < 0.1:
            messages = messages[-3:]


def test_window_and_limit(play: Play) -> None:
    double = play({"steps": [{"say": "more", "fill": "window", "repeat": "forever"}]}, n_ctx=1024)
    full = double.ask([user("x")])
    assert full["choices"][0]["finish_reason"] == "length"
    assert full["usage"]["total_tokens"] == 1024
    assert "truncated = 1" in double.log()
    limited = double.ask([user("x")], max_tokens=7)
    assert limited["choices"][0]["finish_reason"] == "length"
    assert limited["usage"]["completion_tokens"] == 7
    refused = double.post([user("word " * 1100)])
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_prompt_tokens"] == len(prompt_of([user("word " * 1100)]))
    assert error["n_ctx"] == 1024


def test_an_exact_number_of_tokens(play: Play) -> None:
    double = play(
        {
            "steps": [
                {"calls": [{"write_file": {"path": "a", "content": "x"}}], "generated": 400},
                {"say": "x y z", "generated": 2},
            ]
        }
    )
    reply = double.ask([user("x")])
    assert reply["usage"]["completion_tokens"] == 400
    assert json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])["path"] == "a"
    too_small = double.post([user("x")])
    assert too_small.status_code == 500
    assert "a reply of 2 tokens was asked for, but its text has 4" in too_small.text


def test_a_cut_call_is_half_a_call_or_a_500(play: Play) -> None:
    step = {"calls": [{"write_file": {"path": "a.py", "content": "x = 1"}}], "fill": "window"}
    half = play({"steps": [step]}, n_ctx=1024).ask([user("x")])
    (call,) = half["choices"][0]["message"]["tool_calls"]
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(call["function"]["arguments"])
    for name, words in (
        ("unparsed_old", "Failed to parse input at pos 0"),
        ("unparsed_new", "does not match the expected"),
    ):
        answer = play({"server": {"cut_call": name}, "steps": [step]}, n_ctx=1024).post([user("x")])
        assert answer.status_code == 500
        assert words in answer.text


def outcome(double: Double, messages: list[dict[str, Any]]) -> Any:
    return double.server.client().chat(ChatRequest(messages=messages, seed=1, temperature=0.0, tools=TOOLS))


EXPECTED = {
    "overflow": (Overflow, 400),
    "overflow_middle": (Overflow, 400),
    "overflow_old": (Overflow, 400),
    "unparsed_old": (Cut, 500),
    "unparsed_new": (Cut, 500),
    "context_exceeded": (Overflow, 500),
    "context_shift_disabled": (Overflow, 500),
    "bad_history": (Cut, 500),
    "server_error": (ServerError, 500),
    "loading": (ServerError, 503),
    "unauthorized": (ServerError, 401),
    "closed": (ServerError, None),
    "reset": (ServerError, None),
    "gone": (ServerError, None),
    "half_body": (ServerError, None),
    "not_json": (ServerError, 200),
}


def test_every_failure_is_expected_here() -> None:
    assert set(EXPECTED) == set(FAILURES)


@pytest.mark.parametrize("name", FAILURES)
def test_failures_reach_the_client_as_what_they_are(play: Play, name: str) -> None:
    double = play({"steps": [{"fail": name, "say": "half of this"}, {"say": "fine"}]})
    failed = outcome(double, [user("x")])
    kind, status = EXPECTED[name]
    assert type(failed) is kind, failed
    assert failed.status == status
    after = outcome(double, [user("x")])
    if name == "gone":
        assert after.kind == "connect"
    else:
        assert isinstance(after, Reply)
        assert after.message.content == "fine"


def test_a_bad_history_is_refused_by_itself_and_uses_up_no_step(play: Play) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": '{"path":'}}
    history = [user("x"), {"role": "assistant", "content": None, "tool_calls": [call]}, tool("a", "error")]
    double = play({"steps": [{"say": "once"}]})
    for _ in range(2):
        failed = outcome(double, history)
        assert isinstance(failed, Cut)
        assert failed.kind == "unparsed"
    assert outcome(double, [user("x")]).message.content == "once"
    lenient = play({"server": {"check_history": False}, "steps": [{"say": "once"}]})
    assert isinstance(outcome(lenient, history), Reply)


def test_odd_replies_are_replies(play: Play) -> None:
    steps = [
        {},
        {"calls": [{"no_such_tool": {}}, {"read_file": '{"path": '}]},
        {"think": "only thinking"},
        {"calls": [{"write_file": {"path": "big.py", "content": {"chars": 96000}}}]},
    ]
    double = play({"steps": steps}, n_ctx=65536)
    empty, odd, thinking, large = (double.ask([user("x")])["choices"][0] for _ in steps)
    assert empty["message"] == {"role": "assistant", "content": ""}
    assert empty["finish_reason"] == "stop"
    assert [c["function"] for c in odd["message"]["tool_calls"]] == [
        {"name": "no_such_tool", "arguments": "{}"},
        {"name": "read_file", "arguments": '{"path": '},
    ]
    assert odd["finish_reason"] == "tool_calls"
    assert thinking["message"]["reasoning_content"].strip() == "only thinking"
    assert len(json.loads(large["message"]["tool_calls"][0]["function"]["arguments"])["content"]) == 96000


def test_a_stream_adds_up_to_the_reply(play: Play) -> None:
    step = {"think": "hm", "say": "Let me see.", "calls": [{"read_file": {"path": "a.py"}}], "repeat": "forever"}
    double = play({"steps": [step]})
    whole = double.ask([user("x")])
    with double.http.stream(
        "POST", "/v1/chat/completions", json={"messages": [user("x")], "tools": TOOLS, "stream": True}
    ) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    deltas = [c["choices"][0]["delta"] for c in map(json.loads, lines)]
    message = whole["choices"][0]["message"]
    assert "".join(d.get("content") or "" for d in deltas) == message["content"]
    assert "".join(d.get("reasoning_content", "") for d in deltas) == message["reasoning_content"]
    calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
    assert "".join(c["function"]["arguments"] for c in calls) == message["tool_calls"][0]["function"]["arguments"]
    assert json.loads(lines[-1])["timings"]["cache_n"] == whole["usage"]["prompt_tokens"] - 1


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"messages": "x"},
        {"messages": [3]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [user("x")], "tools": 3},
        {"messages": [user("x")], "tools": [3]},
        {"messages": [user("x"), {"role": "assistant", "content": "", "tool_calls": 3}, user("y")]},
        {"messages": [user("x"), {"role": "assistant", "content": "", "tool_calls": [3]}, user("y")]},
        {"messages": [user("x"), {"role": "assistant", "content": "", "reasoning_content": 3}, user("y")]},
    ],
)
def test_malformed_requests_are_400(play: Play, body: Any) -> None:
    double = play({"steps": [{"say": "only once"}]})
    assert double.http.post("/v1/chat/completions", json=body).status_code == 400
    assert double.ask([user("x")])["choices"][0]["message"]["content"] == "only once"


def test_latency_is_waited_for_replies_and_failures(play: Play) -> None:
    steps = [
        {"say": "x", "latency_s": 0.2},
        {"fail": "server_error", "latency_s": 0.2},
        {"fail": "closed", "latency_s": 0.2},
    ]
    double = play({"steps": steps})
    assert all(outcome(double, [user("x")]).ms >= 200 for _ in steps)


def test_a_key_may_be_asked_for(play: Play) -> None:
    double = play({"server": {"api_key": "k"}, **SAY})
    assert double.post([user("x")]).status_code == 401
    assert double.http.get("/health").status_code == 200
    double.http.headers["Authorization"] = "Bearer k"
    assert double.post([user("x")]).status_code == 200


def test_a_decision_model(play: Play) -> None:
    rules = [{"contains": "rm", "choice": "2", "probability": 0.97}, {"choice": "1", "probability": 0.9}]
    double = play({**SAY, "decisions": rules})
    question = {"q": {"type": "choice", "instructions": "look?", "criteria": {"1": "no", "2": "yes"}}}

    def asked(state: str) -> Any:
        return double.http.post("/v1/systemone", json={"state": state, "questions": question}).json()["answers"]["q"]

    assert asked("rm x") == {
        "type": "choice",
        "choice": "2",
        "probabilities": {"1": pytest.approx(0.03), "2": 0.97},
        "confidence": 0.97,
    }
    assert asked("ls")["choice"] == "1"
    assert double.http.post("/v1/systemone", json={"questions": question}).status_code == 400
    assert double.http.get("/v1/models").json()["data"][0]["architecture"]["output_modalities"] == ["decisions"]
    assert play(SAY).http.post("/v1/systemone", json={}).status_code == 501


def test_connections_are_kept_open(play: Play) -> None:
    double = play(SAY)
    with httpx.Client(base_url=double.server.base_url, limits=httpx.Limits(max_connections=1), trust_env=False) as http:
        streams = {id(http.get("/health").extensions["network_stream"]) for _ in range(5)}
    assert len(streams) == 1


def test_requests_that_are_not_the_agents_use_up_no_step(play: Play) -> None:
    double = play({"steps": [{"say": "first"}, {"say": "second"}]})
    client = double.server.client()
    request = ChatRequest(messages=[user("x")], seed=1, temperature=0.0, tools=TOOLS)
    assert client.chat(request).message.content == "first"
    summary = client.chat(ChatRequest(messages=[user("sum up")], seed=1, temperature=0.0, tag="summary"))
    assert isinstance(summary, Reply)
    assert summary.usage.completion_tokens == 401
    assert client.chat(request).message.content == "second"
    left = client.chat(request)
    assert isinstance(left, ServerError)
    assert "no step is left for request 2" in left.error


def test_the_log_says_what_the_replies_said(play: Play) -> None:
    """The parser's rows equal the replies, refusals and failures included."""
    steps = [
        {"say": "a b c", "think": {"tokens": 900}},
        {"calls": [{"read_file": {"path": "a"}}]},
        {"say": "x", "fill": "window"},
        {"fail": "unparsed_old", "calls": [{"bash": {"command": "ls"}}]},
        {"fail": "context_exceeded"},
        {"say": "end", "repeat": "forever"},
    ]
    double = play({"steps": steps, "server": {"prompt_rate": 150}}, n_ctx=4096)
    messages = [user("word " * 1500)]
    rows: list[dict[str, Any]] = []
    for _ in range(3):
        answer = double.ask(messages)
        timings = answer["timings"]
        rows.append(
            {
                "status": "ok",
                "prompt_tokens": answer["usage"]["prompt_tokens"],
                "cached_tokens": timings["cache_n"],
                "processed_tokens": timings["prompt_n"],
                "generated_tokens": timings["predicted_n"],
                "prompt_ms": pytest.approx(timings["prompt_ms"], abs=0.006),
                "eval_ms": pytest.approx(timings["predicted_ms"], abs=0.006),
                "truncated": answer["usage"]["total_tokens"] >= 4096,
            }
        )
        messages = [*messages[:1], user(f"turn {len(rows)}")]
    for _ in range(2):
        assert double.post(messages).status_code == 500
    assert double.post([user("word " * 5000)]).status_code == 400
    double.ask(messages)
    parsed = parse_log(double.log().splitlines())
    assert parsed.era == "E"
    found = [row.as_dict(with_run=False) for row in parsed.requests]
    assert [row["status"] for row in found] == ["ok", "ok", "ok", "failed", "failed", "rejected", "ok"]
    for ours, theirs in zip(rows, found, strict=False):
        assert {k: theirs[k] for k in ours} == ours


def test_the_same_run_gives_the_same_log(play: Play) -> None:
    logs = []
    for _ in range(2):
        double = play(SAY)
        for n in range(3):
            double.ask([user(f"x {n}")])
        logs.append(double.log().replace(double.server.base_url, "URL"))
    assert logs[0] == logs[1]
