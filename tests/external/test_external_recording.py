"""What the proxy writes down: every request's messages can be rebuilt, tokens are counted, streams tell what whole answers tell."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest
from external_lab import Events, proxied
from hypothesis import given
from hypothesis import strategies as st

from harness.external.history import History
from harness.external.recorder import Recorder
from harness.external.stream import assemble
from harness.external.watch import WatchedTree
from harness.record.accounting import account
from harness.record.conversation import conversations
from harness.record.counting import count_requests
from harness.record.external import commands
from harness.record.slot import slot_requests

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
OTHER = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def chat(port: int, messages: list[Any], **fields: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps({"messages": messages} | fields))
    answer = connection.getresponse().read()
    connection.close()
    return None if fields.get("stream") else json.loads(answer)


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


MESSAGES = st.lists(
    st.builds(message, st.sampled_from(["system", "user", "assistant", "tool"]), st.sampled_from("abcdefg")), max_size=6
)


@given(st.lists(MESSAGES, max_size=6))
def test_every_list_that_was_sent_can_be_rebuilt(lists):
    events, history = Events(), History()
    for step, sent in enumerate(lists):
        history.becomes(sent, events, step)
        events.emit("request", step=step, attempt=0, tag="agent")
    assert [m for _, m in conversations(events.rows)] == lists


@given(MESSAGES, MESSAGES)
def test_appending_is_never_a_clear(first, more):
    events, history = Events(), History()
    history.becomes(first, events, 0)
    history.becomes(first + more, events, 1)
    assert events.kind("context") == []
    assert len(events.kind("message")) == len(first + more)


S, U, A1, T1, A2, T2, A3 = (
    message(role, text)
    for role, text in [("system", "s"), ("user", "u")] + [(r, f"{r}{n}") for n in (1, 2) for r in ("assistant", "tool")]
    + [("assistant", "assistant3")]
)  # fmt: skip
GONE = message("tool", "[cleared]")


@pytest.mark.parametrize(
    ("before", "after", "cleared", "new"),
    [
        ([S, U, A1, T1], [S, U, A1, GONE, A2, T2], 1, 2),  # a placeholder, then two new messages
        ([S, U, A1, T1, A2, T2], [S, U, A2, T2, A3], 2, 1),  # the oldest step dropped
        ([S, U, A1], [message("system", "other"), message("user", "new task")], 3, 2),  # another conversation
        ([S, U, A1, T1], [message("system", "today"), U, A1, T1, A2], 1, 1),  # a system prompt with a clock
        ([S, U, A1, T1], [S, U], 2, 0),  # back to the start
    ],
)
def test_what_is_new_is_told_from_what_stands_in_for_the_old(before, after, cleared, new):
    events, history = Events(), History()
    history.becomes(before, events, 0)
    seen = len(events.rows)
    history.becomes(after, events, 1)
    context, *appended = events.rows[seen:]
    assert (context["event"], context["policy"], context["cleared"]) == ("context", "external", cleared)
    assert [e["message"] for e in appended] == (after[len(after) - new :] if new else [])


def test_an_older_conversation_taken_up_again_holds_no_new_content():
    events, history = Events(), History()
    for step, sent in enumerate(([S, U, A1], [message("user", "side question")], [S, U, A1, T1])):
        history.becomes(sent, events, step)
        events.emit("request", step=step, attempt=0, tag="agent")
        events.emit("response", step=step, attempt=0, tag="agent", outcome="reply")
    assert [item.fresh for item in slot_requests(events.rows)] == [None, 1, 1]


def test_a_whole_exchange_has_known_costs(double, tmp_path):
    server = double(n_ctx=4096)
    history = [message("system", "You help."), message("user", "Do the thing with the words. " * 20)]
    with proxied(server, tmp_path / "root") as through:
        for turn in range(4):
            said = chat(through.port, history, seed=turn, max_tokens=50)["choices"][0]["message"]["content"]
            history = [*history, message("assistant", said), message("user", f"And then? {turn}")]
        cut = [history[0], history[1], message("user", "The middle is gone.")]
        chat(through.port, cut, tools=[TOOL])
        chat(through.port, cut, tools=[OTHER])
    client = server.client()
    rows = [*through.events.rows]
    counts = list(count_requests(rows, client.apply_template, client.tokenize, list))
    rows += [{"i": len(rows) + n, "event": "count"} | c for n, c in enumerate(counts)]
    costs = [tokens for _, tokens in account(rows)]
    assert [c["prompt"] for c in counts] == [t.prompt for t in costs]
    assert [t.cause for t in costs][:4] == ["cold", "append", "append", "append"]
    assert [t.recomputed for t in costs][:4] == [0, 0, 0, 0]
    assert costs[4].cause == "clear"
    assert all(t.new is not None and t.recomputed is not None and t.recomputed >= 0 for t in costs)
    start = through.events.kind("start")[0]
    assert (start["system"], start["tools"]) == ("You help.", [])
    requests = through.events.kind("request")
    assert [r.get("schemas") for r in requests] == [None] * 4 + [[TOOL], [OTHER]]
    assert requests[2]["params"] == {"seed": 2, "max_tokens": 50}
    assert [m for _, m in conversations(rows)][-1] == cut


SCENARIO = """
about: calls, thinking, a cut
steps:
- {think: {tokens: 20}, say: Looking., calls: [{bash: {command: "ls -la"}}, {bash: {command: "pytest"}}]}
- {say: Good., times: null}
"""


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}])
def test_a_stream_is_recorded_as_the_same_answer_in_one_piece(double, tmp_path, options):
    found = []
    for stream in (False, True):
        server = double(SCENARIO)
        with proxied(server, tmp_path / f"root{stream}") as through:
            for text in ("a", "b"):
                chat(through.port, [message("user", text)], tools=[TOOL], stream=stream, **(options if stream else {}))
        found.append(through.events.kind("response"))
    for whole, streamed in zip(*found, strict=True):
        for kept in ("message", "finish_reason", "outcome"):
            assert _no_ids(streamed[kept]) == _no_ids(whole[kept])
        for count in ("cache_n", "prompt_n", "predicted_n"):
            assert streamed["timings"][count] == whole["timings"][count]
        assert streamed["usage"] == (whole["usage"] if options else None)
    assert list(commands(through.events.rows)) == ["ls -la", "pytest"]


def _no_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _no_ids(v) for k, v in value.items() if k != "id"}
    return [_no_ids(v) for v in value] if isinstance(value, (list, tuple)) else value


def test_a_reply_cut_by_the_window_is_one(double, tmp_path):
    with proxied(double("about: x\nsteps:\n- {fill: window}\n", n_ctx=512), tmp_path / "root") as through:
        chat(through.port, [message("user", "hi")], stream=True)
        chat(through.port, [message("user", "hi " * 1000)])
    cut, refused = through.events.kind("response")
    assert (cut["outcome"], cut["kind"]) == ("cut", "window")
    assert (refused["outcome"], refused["n_ctx"]) == ("overflow", 512)


@given(st.binary(max_size=200))
def test_any_bytes_can_stand_for_a_stream(raw):
    assemble(b"data: " + raw + b"\n\ndata: [DONE]\n\n")


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda v: (
            st.lists(v)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "tool_calls", "function", "index", "error", "content", "usage"]), v
            )
        ),
        max_leaves=15,
    )
)
def test_any_json_can_stand_in_a_stream(value):
    assemble(f"data: {json.dumps(value)}\n\ndata: {json.dumps({'choices': [value]})}\n\n".encode())


@given(st.one_of(st.binary(max_size=50), st.from_type(dict).map(lambda _: b"{}")), st.binary(max_size=80))
def test_the_recorder_takes_any_body_and_any_answer(tmp_path_factory, body, answer):
    events = Events()
    recorder = Recorder(events, WatchedTree(tmp_path_factory.mktemp("root")), {}, max_steps=9, n_ctx=None)
    with recorder.lock:
        recorder.request(recorder.admit(), body)
    recorder.response(0, 200, [(b"Content-Encoding", b"gzip")], answer, 1.0)
    json.dumps(events.rows, ensure_ascii=False).encode()


def test_changes_belong_to_the_step_before_the_request_that_finds_them(double, tmp_path):
    root = tmp_path / "root"
    with proxied(double(), root) as through:
        chat(through.port, [message("user", "a")])
        (root / "new.py").write_text("x = 1\n")
        chat(through.port, [message("user", "b")])
        (root / "new.py").unlink()
        (root / "\udcff").write_bytes(b"\0")
        through.recorder.finish()
    found = [(e["step"], e["changes"][0]["path"], e["changes"][0]["text"]) for e in through.events.kind("tree")]
    assert found[0] == (0, "new.py", "x = 1\n")
    assert found[1][0] == 1
    json.dumps(through.events.rows, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("THOUGHT: look\n\n```mswea_bash_command\nls -la && cat a.py\n```", ["ls -la && cat a.py"]),
        ("```bash\nls\n```\nthen\n```sh\npytest\n```", ["ls", "pytest"]),
        ("```python\nprint(1)\n```", []),
        ('{"thought": "x", "tool": "run", "command": "ls"}', ["ls"]),
        ('{"tool": "bash", "arguments": {"command": "ls"}}', ["ls"]),
        ('{"tool": "read", "path": "a.py"}', []),
        (None, []),
    ],
)
def test_commands_are_found_in_what_a_reply_says(content, found):
    assert list(commands([{"event": "response", "message": {"content": content, "tool_calls": []}}])) == found
