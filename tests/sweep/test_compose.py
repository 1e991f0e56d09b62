"""Every shipped configuration composes into valid settings, grids expand, and each wrong request is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agent.context import context_policy
from harness.agent.prompts import prompt
from harness.paths import shipped
from harness.settings import SettingsError
from harness.sweep.compose import Place, cells, hydra_session

GROUPS = ("agent", "approval", "context", "experiment", "finish", "model", "protocol", "server", "task")
NEEDS = {
    "server=attach": ["server.url=http://127.0.0.1:1"],
    "server=scripted": ["server.scenario=x"],
    "server=tape": ["server.tape=x"],
    "model=gguf": ["model.name=x", "model.path=x"],
    "task=own": ["task.path=x"],
    "experiment=simulated": ["task.path=x"],
}
CHOICES = [f"{g}={f.stem}" for g in GROUPS for f in sorted((shipped("conf") / g).glob("*.yaml"))]


def composed(place: Place, *overrides: str, multirun: bool = False) -> list:
    with hydra_session(place) as hydra:
        return cells(hydra, [*place.overrides(), *overrides], multirun)


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_of_every_group_composes(place, choice):
    found = composed(place, choice, *NEEDS.get(choice, []))
    assert found
    for cell in found:
        assert prompt(cell.settings.agent.prompt)
        if cell.settings.context.policy != "kv_shift":
            assert context_policy(cell.settings.context)


def test_every_study_of_the_repo_has_a_grid():
    grids = {f.stem for f in (shipped("conf") / "experiment").glob("*.yaml")}
    studies = {f.parent.name for f in shipped("experiments").glob("*/plan.md")}
    assert studies
    assert studies - {"published"} <= grids


def test_a_sweep_may_be_a_union_of_grids(place):
    found = composed(place, "experiment=quick")
    by_task = {}
    for c in found:
        by_task.setdefault(c.settings.task.name, []).append(
            (c.settings.agent.name, c.settings.server.n_ctx, c.settings.seed)
        )
    assert len(by_task["cart"]) == 12
    assert by_task["todo"] == [("part2", 4096, 0), ("part3", 4096, 0)]
    assert len(composed(place, "experiment=quick", "seed=5")) == 8  # the command line wins over every grid


def test_a_grid_expands_in_order_and_a_command_line_value_wins(place):
    asked = ["agent=part2,part3", "server.n_ctx=4096,8192", "seed=0,1"]
    found = composed(place, *asked)
    assert [(c.settings.agent.name, c.settings.server.n_ctx, c.settings.seed) for c in found] == [
        (agent, n_ctx, seed) for agent in ("part2", "part3") for n_ctx in (4096, 8192) for seed in (0, 1)
    ]
    assert {c.settings.agent.max_steps for c in composed(place, *asked, "agent.max_steps=7")} == {7}


def test_an_agent_version_is_a_preset_and_a_later_choice_wins(place):
    (part3,) = composed(place, "agent=part3")
    assert part3.settings.context.policy == "published"
    (other,) = composed(place, "agent=part3", "context=none", "approval=ask_all", "finish.gate=none")
    assert (other.settings.context.policy, other.settings.approval.rule, other.settings.finish.gate) == (
        "none",
        "ask_all",
        "none",
    )
    assert other.settings.agent == part3.settings.agent


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["foo=1"], "foo: no such key"),
        (["server.nctx=1"], "server.nctx: no such key"),
        (["agent=nope"], "agent=nope: there is no such choice; known: clear_only, "),
        (["experiment=nope"], "experiment=nope: there is no such choice"),
        (["server.n_ctx=abc"], "server.n_ctx: expected int, got 'abc'"),
        (["server.n_ctx=12"], "server.n_ctx: needs at least 256 tokens"),
        (["server=attach"], "server.url: needs a value"),
        (["seed=1.5"], "seed: expected int, got 1.5"),
        (["agent.tools=x"], "agent.tools: expected a list, got 'x'"),
        (["context.keep=-1"], "context.keep: needs 0 or more"),
        (["finish.gate=x"], "finish.gate: 'x' is not one of none, tests_pass, evidence"),
        (["protocol.no_repeat=true"], "protocol.no_repeat: needs protocol=constrained"),
        (["a b"], "an override must look like key=value"),
        (["agent=part2,nope"], "agent=nope: there is no such choice"),
    ],
)
def test_a_wrong_request_is_one_line_that_names_the_key(place, overrides, words):
    with pytest.raises(SettingsError) as caught:
        composed(place, *overrides)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_study_of_the_users_own_adds_choices(tmp_path: Path):
    conf = tmp_path / "study, with 'odd' name" / "conf"
    (conf / "experiment").mkdir(parents=True)
    (conf / "experiment" / "mine.yaml").write_text(
        "# @package _global_\n"
        "defaults:\n  - override /agent: part2\n"
        "experiment: {name: mine, seconds_per_run: 3}\n"
        "hydra: {mode: MULTIRUN, sweeper: {params: {seed: 'range(3)'}}}\n"
    )
    found = composed(Place(conf.parent, tmp_path / "runs"), "experiment=mine")
    assert [c.settings.seed for c in found] == [0, 1, 2]
    assert {c.experiment["name"] for c in found} == {"mine"}
