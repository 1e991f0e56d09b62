"""Scenario files: conditions, makers, and one clear line for every mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.serving.errors import ServingError
from harness.serving.scripted import open_scripted, scenario
from harness.serving.scripted.condition import Condition
from harness.serving.scripted.request import view
from harness.settings import ServerSettings

from .conftest import TOOLS, Double, tool, user


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


READ = {"role": "assistant", "content": None, "tool_calls": [call("1", "read_file", '{"path": "a.py"}')]}
OPEN = [user("task"), READ, tool("1", "text of a")]
CLEARED = [
    user("task"),
    READ,
    tool("1", "[cleared to save context: 9 characters. Call the tool again if you need it.]"),
]
GONE = [user("task"), user("1 old step: read_file a.py")]
FAILED = [user("task"), READ, tool("1", "error: no such file")]


def seen(messages: list[dict[str, Any]], *earlier: list[dict[str, Any]], number: int = 0) -> Any:
    read: frozenset[str] = frozenset()
    for before in earlier:
        read = view({"messages": before, "tools": TOOLS}, 0, 10, 100, read).read_before
    return view({"messages": messages, "tools": TOOLS}, number, 60, 100, read)


@pytest.mark.parametrize(
    ("condition", "messages", "holds"),
    [
        ({"last_tool_contains": "text"}, OPEN, True),
        ({"last_tool_contains": "task"}, OPEN, False),
        ({"last_user_contains": "task"}, OPEN, True),
        ({"last_message_contains": "task"}, OPEN, False),
        ({"contains": "task"}, OPEN, True),
        ({"cleared": "a.py"}, OPEN, False),
        ({"cleared": "a.py"}, CLEARED, True),
        ({"cleared": "a.py"}, GONE, True),
        ({"cleared": "b.py"}, CLEARED, False),
        ({"cleared": True}, CLEARED, True),
        ({"cleared": True}, OPEN, False),
        ({"cleared": False}, OPEN, True),
        ({"has_read": "a.py"}, GONE, True),
        ({"prompt_over": 0.5}, OPEN, True),
        ({"prompt_over": 0.6}, OPEN, False),
        ({"prompt_over": 59}, OPEN, True),
        ({"prompt_over": 60}, OPEN, False),
        ({"request": 3}, OPEN, True),
        ({"request": 2}, OPEN, False),
        ({"from_request": 2}, OPEN, True),
        ({"offers_tool": "bash"}, OPEN, True),
        ({"offers_tool": "glob"}, OPEN, False),
        ({"not": {"offers_tool": "glob"}}, OPEN, True),
        ({"contains": "task", "not": {"cleared": "a.py"}}, CLEARED, False),
        ({"contains": "task", "last_tool_contains": "nothing"}, OPEN, False),
    ],
)
def test_conditions(condition: dict[str, Any], messages: list[dict[str, Any]], holds: bool) -> None:
    assert Condition.read(condition, "when").holds(seen(messages, OPEN, number=3)) is holds


def test_what_was_never_read_can_not_be_cleared() -> None:
    cleared = Condition.read({"cleared": "a.py"}, "when")
    assert not cleared.holds(seen(GONE))
    assert not cleared.holds(seen(FAILED, FAILED))


def test_the_first_step_that_may_be_played_is(play: Callable[..., Double]) -> None:
    steps = [
        {"say": "one"},
        {"say": "again", "when": {"last_user_contains": "again"}, "times": 2},
        {"say": "two"},
        {"say": "rest", "repeat": "forever"},
    ]
    double = play({"steps": steps})
    asked = ["again", "again", "x", "again", "again", "x"]
    said = [double.ask([user(text)])["choices"][0]["message"]["content"] for text in asked]
    assert said == ["one", "again", "two", "again", "rest", "rest"]
    assert double.server.erase()
    assert double.ask([user("x")])["choices"][0]["message"]["content"] == "one"


def test_makers(play: Callable[..., Double], tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("a line", encoding="utf-8")
    content = {"from_file": "given.txt", "replace": [["line", "row"]]}
    double = play(
        {
            "steps": [
                {"say": {"tokens": 30}, "calls": [{"write_file": {"path": "a", "content": content}}]},
                {"say": {"from_file": "no"}},
            ]
        }
    )
    reply = double.ask([user("x")])
    (written,) = reply["choices"][0]["message"]["tool_calls"]
    assert yaml.safe_load(written["function"]["arguments"]) == {"path": "a", "content": "a row"}
    missing = double.post([user("x")])
    assert missing.status_code == 500
    assert "there is no no beside the scenario" in missing.text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "not YAML"),
        ("steps: 3", "steps: expected a list"),
        ("about: x", "needs either steps or simulate"),
        ("{steps: [{say: x}], simulate: {}}", "needs either steps or simulate"),
        ("steps: [{sya: x}]", "steps[0]: no such key 'sya'"),
        ("steps: [x]", "steps[0]: expected names and values"),
        ("steps: [{fail: nothing}]", "steps[0].fail: 'nothing' is not one of overflow"),
        ("steps: [{fill: half}]", "steps[0].fill: takes `window`"),
        ("steps: [{fill_in: end}]", "steps[0].fill_in: 'end' is not one of think, say, call"),
        ("steps: [{times: 0}]", "steps[0].times: needs a whole number"),
        ("steps: [{generated: many}]", "steps[0].generated: needs a whole number"),
        ("steps: [{repeat: often}]", "repeat takes `forever`"),
        ("steps: [{latency_s: -1}]", "steps[0].latency_s: needs seconds"),
        ("steps: [{calls: [bash]}]", "steps[0].calls[0]: write a call as one"),
        ("steps: [{calls: [{bash: 3}]}]", "steps[0].calls[0]: arguments are a mapping"),
        ("steps: [{when: {after: x}}]", "steps[0].when: no such condition 'after'"),
        ("steps: [{when: {request: one}}]", "steps[0].when.request: 'one' is not what"),
        ("steps: [{when: {}}]", "steps[0].when: expected conditions"),
        ("{server: {cut_call: maybe}, steps: [{say: x}]}", "server.cut_call: 'maybe' is not one of"),
        ("{server: {write_rate: 0}, steps: [{say: x}]}", "server.write_rate: needs tokens a second"),
        ("{server: {speed: 3}, steps: [{say: x}]}", "server: no such key 'speed'"),
        ("{steps: [{say: x}], decisions: [{option: x}]}", "decisions[0]: takes choice"),
        ("{steps: [{say: x}], decisions: [{choice: 1, probability: 2}]}", "decisions[0].probability"),
        ("simulate: {write: 2}", "simulate: write: needs a chance"),
        ("simulate: {thinking: [9, 3]}", "simulate: thinking: 9 is more than 3"),
        ("simulate: {steps: 3, thought: 1}", "simulate: no such key 'thought'"),
        ("simulate: {seed: today}", "simulate: seed: a whole number"),
        ("simulate: {shelf: {least: 0}}", "simulate: shelf"),
        ("simulate: {shelf: {depth: 3}}", "simulate: "),
        ("simulate: {steps: many}", "simulate: steps: needs"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ServingError) as wrong:
        scenario.read(path)
    message = str(wrong.value)
    assert message.startswith(f"{path}: ")
    assert says in message
    assert "\n" not in message


def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    for name in ("nothing", str(tmp_path / "nothing.yaml")):
        settings = ServerSettings(kind="scripted", n_ctx=512, scenario=name)
        with pytest.raises(ServingError, match=r"server\.scenario"), open_scripted(settings, tmp_path):
            pass


def test_own_scenarios_are_found_before_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "solves.yaml").write_text("steps: [{say: mine}]", encoding="utf-8")
    assert scenario.find("solves", (tmp_path,)) == tmp_path / "solves.yaml"
    assert scenario.find("overflow", (tmp_path,)).parent == scenario.SHIPPED
    assert all(scenario.read(scenario.find(name)).about for name in scenario.shipped())


def test_a_port_that_is_taken(play: Callable[..., Double], tmp_path: Path) -> None:
    double = play({"steps": [{"say": "x"}]})
    port = int(double.server.base_url.rsplit(":", 1)[1])
    settings = ServerSettings(kind="scripted", n_ctx=512, scenario="solves", port=port)
    with pytest.raises(ServingError, match=r"server\.port: can't listen"), open_scripted(settings, tmp_path):
        pass
