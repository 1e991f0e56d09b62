"""A tape gives back what was recorded, times included, and says where a replay departs from it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from answering_server import Answering, half_a_body
from hypothesis import given
from hypothesis import strategies as st

from harness.serving.outcome import ChatRequest, Outcome, ServerError
from harness.serving.servers import ServingError, open_server, server_build
from harness.serving.tape import TAPE, first_difference
from harness.settings import ServerSettings

ASK = ChatRequest([{"role": "user", "content": "hi"}], seed=7, temperature=0.6, tools=[{"type": "function"}])
LATER = dataclasses.replace(ASK, messages=[*ASK.messages, {"role": "assistant", "content": "hello"}], seed=8)
PROPS = {"default_generation_settings": {"n_ctx": 512}, "total_slots": 1, "build_info": "b9999-abcdef0"}


@pytest.fixture
def recorded(answering: Answering, tmp_path: Path) -> list[Outcome]:
    """Three requests on tape.jsonl in tmp_path: a reply, an answer that is no UTF-8, half an answer."""
    answering.on("GET", "/health", 200, {})
    answering.on("GET", "/props", 200, PROPS)
    settings = ServerSettings(kind="attach", n_ctx=512, url=answering.url, record_tape=True)
    outcomes = []
    with open_server(settings, None, tmp_path) as server:
        answering.chat(200, {"choices": [{"finish_reason": "stop", "message": {"content": "hello ✓"}}]})
        outcomes.append(server.client().chat(ASK))
        answering.chat(200, b"\xff\x00")
        outcomes.append(server.client().chat(LATER))
        answering.chat_act(half_a_body)
        outcomes.append(server.client().chat(LATER))
    return outcomes


def replaying(tape: Path) -> ServerSettings:
    return ServerSettings(kind="tape", n_ctx=512, tape=str(tape))


def test_the_same_requests_get_the_same_outcomes(recorded: list[Outcome], tmp_path: Path) -> None:
    assert server_build(replaying(tmp_path)) == "b9999-abcdef0"
    with open_server(replaying(tmp_path / TAPE), None, tmp_path) as server:
        assert (server.build, server.n_ctx, server.pid) == ("b9999-abcdef0", 512, None)
        assert [server.client().chat(r) for r in (ASK, LATER, LATER)] == recorded


def test_the_tape_holds_bodies_answers_and_times(recorded: list[Outcome], tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (tmp_path / TAPE).read_text().splitlines()]
    assert lines[0]["server"]["props"] == PROPS
    assert [line["n"] for line in lines[1:]] == [0, 1, 2]
    assert json.loads(lines[1]["body"]) == ASK.body()
    assert "hello ✓" in json.loads(lines[1]["response"])["choices"][0]["message"]["content"]
    assert lines[2]["response_base64"] == "/wA="
    assert lines[3]["error"]["type"] == "RemoteProtocolError"
    assert [line["ms"] for line in lines[1:]] == [o.ms for o in recorded]


def changed(**fields: Any) -> ChatRequest:
    return dataclasses.replace(LATER, **fields)


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        (changed(seed=9), "seed"),
        (changed(max_tokens=5), "max_tokens"),
        (changed(messages=[LATER.messages[0], {"role": "assistant", "content": "bye"}]), "messages[1].content"),
        (changed(messages=[*LATER.messages, {"role": "user", "content": "x"}]), "messages[2]"),
        (changed(messages=[]), "messages[0]"),
        (
            changed(messages=[LATER.messages[0], {"content": "hello", "role": "assistant"}]),
            "the order of the keys of messages[1]",
        ),
        (changed(temperature=0), "temperature"),
    ],
)
def test_a_departure_is_named_and_the_tape_waits(
    recorded: list[Outcome], tmp_path: Path, request_: ChatRequest, where: str
) -> None:
    with open_server(replaying(tmp_path), None, tmp_path) as server:
        client = server.client()
        client.chat(ASK)
        outcome = client.chat(request_)
        assert isinstance(outcome, ServerError)
        assert (outcome.kind, outcome.type) == ("malformed", "tape_mismatch")
        assert outcome.error == f"tape: request 1 differs from the recorded one at {where}"
        assert client.chat(LATER) == recorded[1]


def test_another_kind_of_request_and_the_end_of_the_tape(recorded: list[Outcome], tmp_path: Path) -> None:
    with open_server(replaying(tmp_path), None, tmp_path) as server:
        client = server.client()
        assert client.tokenize("x") is None
        for request in (ASK, LATER, LATER):
            client.chat(request)
        outcome = client.chat(LATER)
    assert isinstance(outcome, ServerError)
    assert outcome.error == "tape: request 3 is not on the tape, which ends after 3"


def test_a_tape_cut_off_in_its_last_line_keeps_the_others(recorded: list[Outcome], tmp_path: Path) -> None:
    tape = tmp_path / TAPE
    tape.write_bytes(tape.read_bytes()[:-20])
    with open_server(replaying(tape), None, tmp_path) as server:
        assert [server.client().chat(r) for r in (ASK, LATER)] == recorded[:2]


def test_another_window_than_the_recorded_one_is_refused(recorded: list[Outcome], tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"^server\.n_ctx: 1024 asked, but the server's window is 512; .*$"):
        open_server(dataclasses.replace(replaying(tmp_path), n_ctx=1024), None, tmp_path).__enter__()


@pytest.mark.parametrize("content", [None, b"", b"{}\n", b'{"v": 2}\n', b"x\n{}\n", b'{"v": 1}\nx\n{}\n'])
def test_what_is_no_tape_is_said_in_one_line(content: bytes | None, tmp_path: Path) -> None:
    tape = tmp_path / "t.jsonl"
    if content is not None:
        tape.write_bytes(content)
    with pytest.raises(ServingError, match=r"^server\.tape: .*t\.jsonl.*$"):
        open_server(replaying(tape), None, tmp_path).__enter__()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES, VALUES)
def test_values_differ_where_and_only_where_their_text_does(a: Any, b: Any) -> None:
    assert (first_difference(a, b) is None) == (json.dumps(a) == json.dumps(b))
