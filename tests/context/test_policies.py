"""What every context policy must keep: head, order, pairing, its promise; and what the single settings do."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from conversations import as_protocol, native_conversations, pairs_hold, tokens
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.agent.context import POLICIES, context_policy
from harness.agent.context.base import ContextChange, ContextPolicy, ContextState, When
from harness.agent.context.clearing import Clearing, clear
from harness.agent.context.guarded import Guarded
from harness.agent.context.history import ClearHistory
from harness.agent.context.memory import LEDGER_TITLE, SUMMARY_TITLE, Memory
from harness.agent.context.published import BODIES
from harness.agent.context.size import Sizer
from harness.agent.context.steps import transcript
from harness.agent.context.summarise import Summarise
from harness.agent.context.trigger import limit
from harness.agent.notices import CUT_NOTICE, is_cut_notice
from harness.agent.protocol import protocol
from harness.agent.tools.base import parse_arguments
from harness.settings import ContextSettings, SettingsError

Message = dict[str, Any]
WINDOW, REPLY = 2048, 300
SUMMARY = "I read a.py and fixed the sum; two tests are still red."


def policy(name: str, **keys: Any) -> ContextPolicy:
    ledger = {"ledger": name in ("guarded", "summarise")}
    made = ContextSettings(policy=name, **(ledger | keys))
    return context_policy(made, cache_reuse=64, probe={"moved_reuse": True})


def state(messages: list[Message], **keys: Any) -> ContextState:
    values = {"total_tokens": None, "count": tokens, "summarise": lambda asked, most: SUMMARY}
    return ContextState(messages, WINDOW, REPLY, **(values | keys))


SETTINGS = st.fixed_dictionaries(
    {
        "keep": st.integers(0, 3),
        "keep_thinking": st.integers(0, 2),
        "floor": st.sampled_from([0.1, 0.45, 0.9]),
        "trigger": st.sampled_from([None, 0.3, 0.5, 1.0, 600]),
        "adapt": st.booleans(),
        "clear_at_least": st.sampled_from([0, 200]),
    }
)
BEFORE_SEND = ("published_before_send", "guarded", "summarise", "kv_shift")


@given(
    st.sampled_from(POLICIES),
    SETTINGS,
    native_conversations(),
    st.sampled_from(["after_reply", "before_send", "overflow"]),
)
@settings(max_examples=120, deadline=None)
def test_head_order_and_pairing_are_kept_and_the_same_is_decided_twice(
    name: str, keys: dict[str, Any], messages: list[Message], when: When
) -> None:
    if name == "published":
        keys["trigger"] = 0.3
    made, before = policy(name, **keys), copy.deepcopy(messages)
    change = made.decide(when, state(messages, total_tokens=1500))
    assert messages == before
    assert made.decide(when, state(messages, total_tokens=1500)) == change
    if change is None:
        return
    after = change.messages
    assert after[:2] == messages[:2]
    assert pairs_hold(after)
    assert change.reason
    assert (change.cleared == 0) <= (after == messages)
    # What is left of the old messages stands in its old order: roles and call ids are never reordered.
    ids = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    left = [m["tool_call_id"] for m in after if m["role"] == "tool"]
    assert left == [i for i in ids if i in left]


@given(st.sampled_from(["guarded", "kv_shift", "summarise"]), SETTINGS, native_conversations())
@settings(max_examples=80, deadline=None)
def test_the_promised_size_is_kept(name: str, keys: dict[str, Any], messages: list[Message]) -> None:
    keys["clear_at_least"] = 0
    asked = state(messages)
    change = policy(name, **keys).decide("before_send", asked)
    promised = limit(keys["trigger"], asked)
    if change is None:
        assert tokens(messages) <= promised
        return
    size, left = tokens(change.messages), transcript(change.messages)
    whole = [m for s in left.steps for i in s.results() if len((m := s.messages[i])["content"]) > 100]
    if name == "kv_shift":
        assert size <= promised or len(left.steps) <= 1
        return
    assert size <= promised or len(whole) <= 1, "more could have been cleared"
    assert size <= WINDOW or not whole, "a request that can't be sent, and something was left to clear"


@given(native_conversations(), st.booleans(), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=80, deadline=None)
def test_clearing_twice_is_clearing_once(messages: list[Message], ledger: bool, keep: int, thinking: int) -> None:
    how = Clearing(keep=keep, keep_thinking=thinking, ledger=ledger)
    once = clear(messages, how, WINDOW)
    assert clear(once, how, WINDOW) == once


@given(
    st.sampled_from(["native", "text_json", "constrained"]), st.booleans(), st.integers(0, 2), native_conversations()
)
@settings(max_examples=80, deadline=None)
def test_every_protocol_can_send_a_cleared_conversation(
    name: str, ledger: bool, keep: int, messages: list[Message]
) -> None:
    stored = as_protocol(messages, name)
    assert pairs_hold(stored)
    how = Clearing(keep=keep, keep_thinking=1, ledger=ledger)
    after = clear(stored, how, WINDOW)
    sent = protocol(name).wire(after)
    assert len(sent) == len(after)
    said = json.dumps([m | {"reasoning_content": None} for m in sent if m["role"] == "assistant"], ensure_ascii=False)
    for call in (c for m in stored for c in m.get("tool_calls") or ()):
        arguments = parse_arguments(call["function"]["arguments"]) or {}
        for body in (arguments.get(k, "") for k in BODIES):
            assert len(body) < 60 or json.dumps(body, ensure_ascii=False)[1:-1] not in said, "a cleared body is sent"
    if name == "constrained":
        # A reply that is sent as the schema would have it must still be one JSON object per call.
        for message, one in zip(after, sent, strict=True):
            if message["role"] == "assistant" and message.get("tool_calls"):
                assert all(isinstance(json.loads(line), dict) for line in one["content"].split("\n"))


@given(st.sampled_from(BEFORE_SEND), native_conversations())
@settings(max_examples=40, deadline=None)
def test_without_a_counter_the_decision_says_where_its_numbers_come_from(name: str, messages: list[Message]) -> None:
    made = policy(name, trigger=0.3)
    change = made.decide("before_send", state(messages, count=None))
    assume(change is not None)
    assert change is not None
    assert change.decision["size_is"] == "estimated"
    known = made.decide("before_send", state(messages, count=None, total_tokens=1900, appended=1))
    assert known is not None
    assert known.decision["size_is"] == "reported_and_estimated"


def test_an_estimate_from_the_servers_size_adds_what_came_after() -> None:
    messages = [{"role": "system", "content": "s" * 400}, {"role": "user", "content": "t" * 400}]
    later = [*messages, {"role": "assistant", "content": "a" * 300}, {"role": "user", "content": "b" * 3000}]
    sizer = Sizer(ContextState(later, WINDOW, None, 300, None, appended=1))
    assert 300 + 3000 / 4 < sizer.tokens(later) < 300 + 3000 / 2
    assert sizer.tokens(later[:-1]) == 300


def _steps(number: int, size: int, thinking: int = 100) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "s"}, {"role": "user", "content": "t"}]
    for n in range(number):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"f{n}.py"})}
        call = {"id": f"call_{n}_0", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "reasoning_content": "x" * thinking, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"{n} " + "y" * size})
    return messages


def test_guarded_waits_for_its_limit_then_leaves_two_results_one_thinking_and_a_ledger() -> None:
    made = policy("guarded")
    small = _steps(4, 800)
    assert made.decide("before_send", state(small)) is None
    change = made.decide("before_send", state(_steps(8, 800)))
    assert change is not None
    t = transcript(change.messages)
    assert len(t.steps) == 2
    assert [bool(s.reply and s.reply.get("reasoning_content")) for s in t.steps] == [False, True]
    assert t.memory.lines[0] == "- read_file f0.py -> 802 characters"
    assert len(t.memory.lines) == 6
    assert change.decision["after"] == tokens(change.messages) <= 0.45 * WINDOW


def test_guarded_keeps_one_result_where_two_are_above_the_floor() -> None:
    change = policy("guarded").decide("before_send", state(_steps(4, 2400)))
    assert change is not None
    assert len(transcript(change.messages).steps) == 1


def test_a_ledger_grows_at_its_end_only_so_the_prefix_stays() -> None:
    first = clear(_steps(6, 400), Clearing(ledger=True), WINDOW)
    function = {"name": "bash", "arguments": '{"command": "pytest -q"}'}
    call = {"id": "call_9_0", "type": "function", "function": function}
    more = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    more.append({"role": "tool", "tool_call_id": "call_9_0", "content": "E\n2 failed, 1 passed in 0.1s"})
    second = clear([*first, *more, *more, *more], Clearing(ledger=True), WINDOW)
    assert second[2]["content"].startswith(first[2]["content"])
    assert second[2]["content"].endswith("- bash pytest -q -> 28 characters, last: 2 failed, 1 passed in 0.1s")


def test_a_ledger_that_outgrows_its_room_is_halved_and_says_how_much_is_gone() -> None:
    memory = Memory().with_lines([f"- read_file f{n}.py -> 900 characters" for n in range(100)], 2048)
    assert sum(map(len, memory.lines)) <= 0.2 * 2048
    assert memory.dropped == 100 - len(memory.lines)
    message = memory.message()
    assert message is not None
    assert Memory.read(message) == memory


def test_only_the_newest_cut_notice_stays() -> None:
    notice = {"role": "user", "content": CUT_NOTICE.format(n_ctx=WINDOW)}
    messages = [*_steps(3, 900), notice, notice, *_steps(3, 900)[4:], notice]
    change = policy("guarded", trigger=0.3).decide("before_send", state(messages))
    assert change is not None
    assert sum(map(is_cut_notice, change.messages)) == 1
    assert is_cut_notice(change.messages[-1])


def test_the_checks_failures_are_results_too() -> None:
    messages = _steps(0, 0)
    for n in range(8):
        messages += [
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": f"pytest fails {n}\n" + "F" * 900},
        ]
    change = policy("guarded").decide("before_send", state(messages))
    assert change is not None
    assert len(transcript(change.messages).steps) == 2
    assert change.messages[2]["content"].startswith(LEDGER_TITLE)


def test_a_clear_that_frees_too_little_is_declined_with_its_reason() -> None:
    # The newest results alone are over the limit: a clear could only take old thinking.
    messages = _steps(2, 3100, thinking=40)
    made = Guarded(trigger=0.5, clearing=Clearing(keep=2, ledger=True), clear_at_least=5000)
    change = made.decide("before_send", state(messages))
    assert change is not None
    assert (change.cleared, change.messages) == (0, messages)
    assert "fewer than 5000" in change.reason


def test_adapt_keeps_less_after_clears_that_follow_each_other() -> None:
    messages = _steps(9, 500)
    made = policy("guarded", adapt=True, keep=3)

    def kept(thrashes: int) -> int:
        change = made.decide("before_send", state(messages, since_clear=1, thrashes=thrashes))
        assert change is not None
        assert change.decision["thrash"] is True
        return len(transcript(change.messages).steps)

    assert [kept(n) for n in range(4)] == [3, 2, 1, 1]


def test_history_counts_a_clear_within_two_requests_as_thrashing() -> None:
    history = ClearHistory()
    history.cleared()
    history.cleared()  # before a request: the same clear
    assert (history.since_clear, history.thrashes) == (0, 0)
    history.answered()
    history.answered()
    history.cleared()
    assert history.thrashes == 1
    for _ in range(3):
        history.answered()
    history.cleared()
    assert history.thrashes == 1


class TestSummarise:
    def decide(self, messages: list[Message], **keys: Any) -> tuple[ContextChange | None, list[list[Message]]]:
        asked: list[list[Message]] = []

        def answer(question: list[Message], most: int) -> str | None:
            asked.append(question)
            return SUMMARY if keys.get("answers", True) else " "

        made = Summarise(trigger=0.6, summary_tokens=100)
        return made.decide("before_send", state(messages, summarise=answer)), asked

    def test_the_summary_takes_the_place_of_old_steps(self) -> None:
        messages = _steps(7, 600)
        change, asked = self.decide(messages)
        assert change is not None
        assert asked[0][: len(messages)] == messages
        assert asked[0][-1]["role"] == "user"
        assert change.messages[2]["content"] == f"{SUMMARY_TITLE}\n{SUMMARY}"
        assert len(transcript(change.messages).steps) == 2

    def test_a_second_summary_replaces_the_first(self) -> None:
        change, _ = self.decide(_steps(7, 600))
        assert change is not None
        again, asked = self.decide([*change.messages, *_steps(4, 600)[2:]])
        assert again is not None
        assert asked
        assert sum(SUMMARY_TITLE in (m["content"] or "") for m in again.messages) == 1

    def test_without_an_answer_or_room_it_clears_and_says_so(self) -> None:
        change, _ = self.decide(_steps(7, 600), answers=False)
        assert change is not None
        assert change.decision["no_summary"] == "the model gave no usable summary"
        assert change.messages[2]["content"].startswith(LEDGER_TITLE)
        full, asked = self.decide(_steps(12, 640))
        assert full is not None
        assert not asked
        assert "no room" in full.decision["no_summary"]


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"policy": "magic"}, "context.policy: 'magic' is not one of none, published"),
        ({"policy": "guarded", "clear": ("results", "tools")}, "context.clear: no kind named tools"),
        (
            {"policy": "guarded", "clear": ("thinking",), "ledger": True},
            "context.ledger: needs results in context.clear",
        ),
        ({"policy": "published", "trigger": 500.0}, "context.trigger: published takes a fraction"),
        ({"policy": "kv_shift"}, "context.policy: kv_shift needs server.cache_reuse above 0"),
    ],
)
def test_settings_that_do_not_hold_are_one_line(keys: dict[str, Any], line: str) -> None:
    with pytest.raises(SettingsError, match=line.replace(".", r"\.")) as error:
        context_policy(ContextSettings(**keys))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("probe", [None, {}, {"moved_reuse": False}, {"moved_reuse": None}])
def test_kv_shift_needs_a_server_that_was_seen_to_shift(probe: dict[str, Any] | None) -> None:
    with pytest.raises(SettingsError, match="probe saw moved cache reused"):
        context_policy(ContextSettings(policy="kv_shift"), cache_reuse=64, probe=probe)


def test_kv_shift_leaves_nothing_where_old_steps_were() -> None:
    messages = _steps(8, 800)
    change = policy("kv_shift").decide("before_send", state(messages))
    assert change is not None
    left = len(change.messages) - 2
    assert change.messages == [*messages[:2], *messages[-left:]]
    assert tokens(change.messages) <= 0.45 * WINDOW
    assert tokens([*messages[:2], *messages[-left - 2 :]]) > 0.45 * WINDOW, "it took out more than it had to"
