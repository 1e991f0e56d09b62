"""Random conversations as the loop makes them: a hypothesis strategy, and small helpers to look at them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from harness.agent.notices import CUT_NOTICE
from harness.agent.protocol import protocol
from harness.agent.protocol.base import ParsedReply
from harness.agent.protocol.text_json import render
from harness.serving.outcome import AssistantMessage, ToolCall

Message = dict[str, Any]
TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
LONG = st.integers(0, 600).map(lambda n: "text of a file\n" * (n // 15) + "x" * (n % 15))
# The last one is what a model that repeats itself writes: no JSON reader of Python's gets to its end.
BAD_ARGUMENTS = st.sampled_from(["{", "[1,2]", '"é"', "", '{"path": "a", }', "[" * 3000])


@st.composite
def arguments(draw: st.DrawFn, name: str) -> str:
    if draw(st.integers(0, 9)) == 0:
        return draw(BAD_ARGUMENTS)
    values: dict[str, Any] = {"path": draw(st.sampled_from(["a.py", "src/b.py", "ü.py"]))}
    if name == "write_file":
        values["content"] = draw(st.one_of(LONG, st.just("[cleared: 12 characters]")))
    if name == "edit_file":
        values |= {"old": draw(LONG), "new": draw(LONG)}
    spelling = draw(st.sampled_from([None, (",", ":")]))
    return json.dumps(values, ensure_ascii=draw(st.booleans()), separators=spelling)


@st.composite
def native_conversations(draw: st.DrawFn, *, most_steps: int = 10) -> list[Message]:
    """System prompt, task, and steps of every kind: calls with results, replies without calls, cut ones."""
    messages: list[Message] = [
        {"role": "system", "content": draw(LONG)},
        {"role": "user", "content": draw(TEXT) or "task"},
    ]
    for step in range(draw(st.integers(0, most_steps))):
        kind = draw(st.sampled_from(["calls", "calls", "calls", "no call", "cut"]))
        if kind == "cut":
            messages.append({"role": "user", "content": CUT_NOTICE.format(n_ctx=4096)})
            continue
        reply: Message = {"role": "assistant", "content": draw(TEXT)}
        if draw(st.booleans()):
            reply["reasoning_content"] = draw(LONG.filter(bool))
        if kind == "no call":
            messages += [
                reply,
                {"role": "user", "content": "pytest fails, so the task is not done yet:\n" + draw(LONG)},
            ]
            continue
        calls = []
        for number in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from(["read_file", "write_file", "edit_file", "bash"]))
            function = {"name": name, "arguments": draw(arguments(name))}
            calls.append({"id": f"call_{step}_{number}", "type": "function", "function": function})
        messages.append(reply | {"tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": draw(st.one_of(LONG, TEXT))} for c in calls]
    return messages


def as_protocol(messages: list[Message], name: str) -> list[Message]:
    """The same conversation as an agent of that protocol stores it: its own reading of what such a model writes."""
    if name == "native":
        return messages
    out: list[Message] = []
    for message in messages:
        calls = message.get("tool_calls")
        if message["role"] != "assistant" or not calls:
            out.append(message)
            continue
        made = [ToolCall(c["id"], c["function"]["name"], _object(c["function"]["arguments"])) for c in calls]
        if name == "text_json":
            text = render(message["content"], made)
        else:
            first = {"thought": "t", "tool": made[0].name, "arguments": json.loads(made[0].arguments)}
            text = json.dumps(first, ensure_ascii=False)
        read = protocol(name).read(AssistantMessage(text, message.get("reasoning_content")))
        kept = tuple(ToolCall(made[i].id, c.name, c.arguments) for i, c in enumerate(read.calls[: len(made)]))
        out.append(ParsedReply(read.content, read.reasoning, kept, raw=read.raw).stored())
    answered = {c["id"] for m in out for c in m.get("tool_calls") or ()}
    return [m for m in out if m["role"] != "tool" or m["tool_call_id"] in answered]


def _object(raw: str) -> str:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    return json.dumps(value if isinstance(value, dict) else {"path": "a.py"}, ensure_ascii=False)


def pairs_hold(messages: list[Message]) -> bool:
    """Every result follows the reply that made its call, and every call of a reply has its result there."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return False
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return False
        open_calls = [c["id"] for c in message.get("tool_calls") or ()]
    return not open_calls


def tokens(messages: list[Message]) -> int:
    """A simple exact counter: four characters of what the native protocol sends are one token."""
    return sum(len(json.dumps(m, ensure_ascii=False)) for m in protocol("native").wire(messages)) // 4
