"""`published` does what the articles' notes say of their clearing, message for message.

`by_the_rules` is written from those notes alone, in another shape than the policy: it walks backwards and edits copies.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from conversations import native_conversations
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agent.context.base import ContextState
from harness.agent.context.published import Published, clear

Message = dict[str, Any]


def by_the_rules(messages: list[Message]) -> tuple[list[Message], int]:
    out = copy.deepcopy(messages)
    seen_results, changed = 0, 0
    total = sum(m["role"] == "tool" for m in messages)
    if total <= 2:
        return out, 0
    for message in reversed(out):
        before = json.dumps(message, sort_keys=True)
        if seen_results >= 2:
            if message["role"] == "tool" and message["content"][:8] != "[cleared":
                size = len(message["content"])
                message["content"] = (
                    f"[cleared to save context: {size} characters. Call the tool again if you need it.]"
                )
            elif message["role"] == "assistant":
                message.pop("reasoning_content", None)
                for call in message.get("tool_calls", []):
                    try:
                        arguments = json.loads(call["function"]["arguments"])
                    except (json.JSONDecodeError, RecursionError):
                        continue
                    for key in ("content", "old", "new") if type(arguments) is dict else ():
                        if isinstance(arguments.get(key), str) and arguments[key][:8] != "[cleared":
                            arguments[key] = "[cleared: %d characters]" % len(arguments[key])  # noqa: UP031
                    call["function"]["arguments"] = json.dumps(arguments)
        seen_results += message["role"] == "tool"
        changed += json.dumps(message, sort_keys=True) != before
    return out, changed


@given(native_conversations())
@settings(max_examples=120, deadline=None)
def test_random_conversations_are_cleared_by_the_rules(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    assert clear(messages, 2) == by_the_rules(messages)
    assert messages == before, "the policy changed the list it was given"


@given(native_conversations(), st.integers(1, 9000))
@settings(max_examples=40, deadline=None)
def test_it_clears_after_a_reply_over_half_the_window_and_when_the_server_refuses(
    messages: list[Message], total: int
) -> None:
    def state(tokens: int | None) -> ContextState:
        return ContextState(messages, 8192, None, tokens)

    wanted = by_the_rules(messages)
    policy = Published()
    after = policy.decide("after_reply", state(total))
    if total <= 4096:
        assert after is None
    else:
        assert after is not None
        assert (after.messages, after.cleared) == wanted
    assert policy.decide("before_send", state(total)) is None
    assert policy.decide("after_reply", state(None)) is None
    refused = policy.decide("overflow", state(None))
    assert refused is not None
    assert (refused.messages, refused.cleared) == wanted


def _call(number: int, name: str, arguments: str) -> Message:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "reasoning_content": f"thought {number}",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def _result(number: int, text: str) -> Message:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


HEAD = [{"role": "system", "content": "s"}, {"role": "user", "content": "task"}]


def test_the_reply_that_asked_for_the_second_newest_result_is_cleared_too() -> None:
    messages = [
        *HEAD,
        _call(0, "read_file", '{"path": "a"}'),
        _result(0, "x" * 100),
        _call(1, "write_file", '{"path": "a", "content": "' + "y" * 50 + '"}'),
        _result(1, "wrote 50 characters to a"),
        _call(2, "bash", '{"command": "pytest"}'),
        _result(2, "1 failed"),
    ]
    after, changed = clear(messages, 2)
    assert changed == 3
    assert after[3]["content"] == "[cleared to save context: 100 characters. Call the tool again if you need it.]"
    assert json.loads(after[4]["tool_calls"][0]["function"]["arguments"])["content"] == "[cleared: 50 characters]"
    assert ["reasoning_content" in m for m in after if m["role"] == "assistant"] == [False, False, True]
    assert after[5:] == messages[5:]


def test_a_respelling_alone_counts_and_bad_arguments_stay() -> None:
    compact, bad = _call(0, "bash", '{"command":"ls"}'), _call(1, "bash", '{"command": ')
    del compact["reasoning_content"], bad["reasoning_content"]
    messages = [
        *HEAD,
        compact,
        _result(0, "[cleared"),
        bad,
        _result(1, "[cleared, says the tool"),
        _call(2, "bash", "{}"),
    ]
    messages += [_result(2, "r"), _call(3, "bash", "{}"), _result(3, "r")]
    after, changed = clear(messages, 2)
    # The compact one is respelled; the reply that asked for the second-newest result loses its thinking.
    assert changed == 2
    assert after[2]["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'
    assert after[3:6] == messages[3:6]


@pytest.mark.parametrize("results", [0, 1, 2])
def test_two_results_or_fewer_are_left_alone(results: int) -> None:
    messages = list(HEAD)
    for number in range(results):
        messages += [_call(number, "bash", '{"command":"ls"}'), _result(number, "r" * 500)]
    assert clear(messages, 2) == (messages, 0)
