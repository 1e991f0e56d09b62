"""The to-do list's rules: statuses, ids, one item in progress, retries and their limit."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harness.agent.planning import RETRY_LIMIT, STATUSES, Plan, planning_tools
from harness.agent.tools.base import ToolError, call


@pytest.fixture
def tools() -> dict:
    return {t.name: t for t in planning_tools(Plan())}


def test_scratchpad_is_trimmed_and_replaced(tools):
    assert call(tools, "scratchpad_read", "").text == "(empty)"
    call(tools, "scratchpad_write", '{"text": "  one \\n"}')
    call(tools, "scratchpad_write", '{"text": " two "}')
    assert call(tools, "scratchpad_read", "{}").text == "two"


def test_numeric_ids_are_found_again(tools):
    assert call(tools, "todo_append", '{"id": 1, "content": "look"}').ok
    assert call(tools, "todo_update", '{"id": 1, "status": "done"}').ok
    assert call(tools, "todo_append", '{"id": "1", "content": "again"}').text == "error: there is already an item 1"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("todo_append", '{"id": "a", "content": "x", "status": "odd"}', "unknown status odd"),
        ("todo_update", '{"id": "nope", "status": "done"}', "no item nope"),
        ("todo_update", '{"id": "first"}', "nothing to update"),
        ("todo_update", '{"id": "second", "status": "in_progress"}', "first is in progress"),
    ],
)
def test_refusals_are_text(tools, name, arguments, words):
    call(tools, "todo_append", '{"id": "first", "content": "x", "status": "in_progress"}')
    call(tools, "todo_append", '{"id": "second", "content": "y"}')
    result = call(tools, name, arguments)
    assert not result.ok
    assert words in result.text


def test_listing_counts_all_and_hides_done_and_cancelled():
    plan = Plan()
    for name, status in (("a", "done"), ("b", "pending"), ("c", "cancelled"), ("d", "failed")):
        plan.append(name, f"do {name}", status)
    assert (
        plan.listing()
        == "4 items (pending: 1, done: 1, cancelled: 1, failed: 1)\n- [pending] b: do b\n- [failed] d: do d"
    )
    assert len(plan.listing(everything=True).splitlines()) == 5


def test_the_third_retry_is_the_last():
    plan = Plan()
    plan.append("a", "x")
    said = []
    for _ in range(RETRY_LIMIT):
        plan.update("a", status="failed")
        said.append(plan.update("a", status="in_progress"))
    assert ["retry 1 of" in said[0], "retry 2 of" in said[1], "Retry limit (3) reached" in said[2]] == [True] * 3
    assert [i.id for i in plan.at_retry_limit] == ["a"]
    plan.update("a", status="cancelled")
    assert plan.at_retry_limit == []


class PlanMachine(RuleBasedStateMachine):
    """Whatever is asked, at most one item is in progress and no id stands twice."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan()

    @rule(name=st.sampled_from("abcd"), status=st.sampled_from([*STATUSES, "odd"]))
    def append(self, name, status):
        with contextlib.suppress(ToolError):
            self.plan.append(name, "x", status)

    @rule(name=st.sampled_from("abcd"), status=st.sampled_from([*STATUSES, "odd"]))
    def update(self, name, status):
        with contextlib.suppress(ToolError):
            self.plan.update(name, status=status)

    @invariant()
    def holds(self):
        assert sum(i.status == "in_progress" for i in self.plan.items) <= 1
        assert len({i.id for i in self.plan.items}) == len(self.plan.items)
        assert all(i.status in STATUSES for i in self.plan.items)


TestPlanMachine = PlanMachine.TestCase
