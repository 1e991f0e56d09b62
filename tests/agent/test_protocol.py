"""Protocols: what is read from a reply, and what is sent back; a stored reply must go back to the letter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agent.context.published import clear
from harness.agent.planning import Plan, planning_tools
from harness.agent.protocol import PROTOCOLS, protocol
from harness.agent.protocol.constrained import FINISH, reply_schema
from harness.agent.protocol.text_json import find_calls
from harness.agent.tools.base import Tool
from harness.record.behaviour import arguments_of
from harness.serving.outcome import AssistantMessage, ToolCall

READ = Tool("read_file", "Read.", {"path": {"type": "string"}}, lambda path: path)
WRITE = Tool(
    "write_file", "Write.", {"path": {"type": "string"}, "content": {"type": "string"}}, lambda path, content: ""
)
JSON_TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40)
ARGUMENTS = st.dictionaries(JSON_TEXT.filter(bool), st.one_of(JSON_TEXT, st.integers(-9, 9), st.booleans()), max_size=3)


def fenced(name: str, arguments: dict) -> str:
    return f"```json\n{json.dumps({'name': name, 'arguments': arguments}, indent=2)}\n```"


def test_native_keeps_calls_as_they_came():
    call = ToolCall("x", "read_file", '{"path": "a')
    reply = protocol("native").read(AssistantMessage("text", "thought", (call,)))
    assert reply.calls == (call,)
    stored = reply.stored()
    assert stored["tool_calls"][0]["function"]["arguments"] == '{"path": "a'
    assert protocol("native").wire([stored | {"raw": "x"}]) == [stored]


def test_text_json_finds_a_call_in_a_fence_and_keeps_the_prose_before_it():
    text = "I will read it.\n\n" + fenced("read_file", {"path": "a.py"}) + "\nThen I fix it."
    reply = protocol("text_json").read(AssistantMessage(text))
    assert reply.content == "I will read it."
    assert [(c.name, json.loads(c.arguments)) for c in reply.calls] == [("read_file", {"path": "a.py"})]
    assert protocol("text_json").wire([reply.stored()]) == [{"role": "assistant", "content": text}]


@pytest.mark.parametrize(
    "text",
    [
        "no call at all",
        '{"a": 1}',
        '{"name": "x"}',
        'def f():\n    return {"name": 1, "arguments": {}}',
        '```json\n{"name": "write_file", "arguments": {"path": "a", "content": "half',
        "{" * 2000,
    ],
)
def test_text_json_takes_other_text_as_prose(text):
    reply = protocol("text_json").read(AssistantMessage(text))
    assert reply.calls == ()
    assert reply.content == text


def test_text_json_takes_several_calls_in_order_and_real_line_breaks_in_strings():
    text = (
        fenced("read_file", {"path": "a"}) + '\n{"name": "write_file", "arguments": {"path": "b", "content": "x\ny"}}'
    )
    calls = find_calls(text)[1]
    assert [c.name for c in calls] == ["read_file", "write_file"]
    assert json.loads(calls[1].arguments)["content"] == "x\ny"


def test_text_json_prefers_native_calls():
    native = ToolCall("1", "read_file", "{}")
    reply = protocol("text_json").read(AssistantMessage(fenced("write_file", {}), None, (native,)))
    assert reply.calls == (native,)


@given(ARGUMENTS, JSON_TEXT)
def test_text_json_round_trip(arguments, prose):
    text = f"{prose.replace('{', '(')}\n{fenced('tool', arguments)}"
    reply = protocol("text_json").read(AssistantMessage(text))
    assert [json.loads(c.arguments) for c in reply.calls] == [arguments]
    assert protocol("text_json").wire([reply.stored()])[0]["content"] == text


def constrained_text(name: str, arguments: dict) -> str:
    return json.dumps({"thought": "I look.", "tool": name, "arguments": arguments}, indent=1)


def test_constrained_reads_a_call_and_sends_it_back_to_the_letter():
    text = constrained_text("read_file", {"path": "a"})
    reply = protocol("constrained").read(AssistantMessage(text))
    assert reply.calls[0].name == "read_file"
    assert reply.content == "I look."
    assert protocol("constrained").wire([reply.stored()]) == [{"role": "assistant", "content": text}]


def test_constrained_finish_is_no_call():
    reply = protocol("constrained").read(AssistantMessage(constrained_text(FINISH, {"summary": "fixed"})))
    assert reply.calls == ()
    assert reply.finish == "fixed"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tool": 1}', '{"tool": "x", "arguments": 3}', '{"thought": "half'])
def test_constrained_says_why_a_reply_could_not_be_read(text):
    reply = protocol("constrained").read(AssistantMessage(text))
    assert reply.calls == ()
    assert reply.problem


def test_constrained_schema_leaves_a_banned_tool_out_and_is_never_empty():
    names = [f["properties"]["tool"]["const"] for f in reply_schema([READ, WRITE], {"read_file"})["anyOf"]]
    assert names == ["write_file", FINISH]
    assert list(reply_schema([READ], ())["anyOf"][0]["properties"]) == ["thought", "tool", "arguments"]
    assert reply_schema([], {FINISH})["anyOf"]


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_a_cleared_body_reaches_the_wire(name):
    """A context policy rewrites the stored calls; what is sent must show the placeholder and no longer the body."""
    way = protocol(name)
    written = {"path": "a", "content": "secret body " * 9}
    source = {
        "native": AssistantMessage("", None, (ToolCall("", "write_file", json.dumps(written)),)),
        "text_json": AssistantMessage("Writing.\n" + fenced("write_file", written)),
        "constrained": AssistantMessage(constrained_text("write_file", written)),
    }[name]
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "t"}]
    for i in range(3):
        reply = way.read(source).stored()
        reply["tool_calls"][0]["id"] = f"call_{i}_0"
        messages += [reply, {"role": "tool", "tool_call_id": f"call_{i}_0", "content": "result " * 20}]
    cleared, count = clear(messages, keep=2)
    assert count == 3  # the oldest call and result, and the call of the second-newest result
    sent = json.dumps(way.wire(cleared))
    assert sent.count("secret body") == 9
    assert sent.count("[cleared: 108 characters]") == 2
    assert "[cleared to save context: 140 characters." in sent


def test_every_tool_is_a_valid_declaration():
    for tool in planning_tools(Plan()):
        declared = tool.declaration()["function"]
        assert set(declared["parameters"]["required"]) <= set(declared["parameters"]["properties"])


@pytest.mark.parametrize("name", ["text_json", "constrained"])
def test_arguments_that_nest_without_end_are_sent_and_end_no_run(name):
    endless = "[" * 3000
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": endless}}
    text = json.dumps({"name": "bash", "arguments": endless})
    stored = {"role": "assistant", "content": "", "tool_calls": [call], "raw": text}
    assert protocol(name).wire([stored])[0]["content"]
    assert arguments_of({"arguments": endless}) == {}
