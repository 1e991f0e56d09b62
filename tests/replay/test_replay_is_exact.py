"""A replay under the policy that was recorded gives the recorded numbers, request by request and token by token."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import WINDOW, record

from analysis.replay.policies import NamedPolicy
from analysis.replay.predict import predictions
from analysis.replay.replay import read_run, replay
from analysis.replay.server_check import check
from analysis.replay.sources import Sources
from analysis.tables.records import Record
from harness.agent.context import context_policy
from harness.record.accounting import account
from harness.record.slot import reached_slot
from harness.serving.scripted import open_scripted
from harness.settings import ContextSettings, ServerSettings

POLICIES = {
    "none": ContextSettings("none"),
    "published": ContextSettings("published"),
    "published_before_send": ContextSettings("published_before_send"),
    "guarded": ContextSettings("guarded", ledger=True),
}


PROTOCOLS = ("text_json", "constrained")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """By policy, all with native calls; by policy and protocol for the others."""
    native = {
        name: record(tmp_path_factory.mktemp(name), context, n_ctx=1 << 16 if name == "none" else WINDOW)
        for name, context in POLICIES.items()
    }
    return native | {
        f"{name} {protocol}": record(tmp_path_factory.mktemp(protocol), POLICIES[name], protocol=protocol)
        for name in ("published", "guarded")
        for protocol in PROTOCOLS
    }


NAMES = [*POLICIES, *(f"{name} {protocol}" for name in ("published", "guarded") for protocol in PROTOCOLS)]


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_policy_replayed_gives_the_recorded_requests(
    recorded: dict[str, Record], name: str, tmp_path: Path
) -> None:
    with Sources(tmp_path) as sources:
        run, checks = read_run(recorded[name], sources)
        through = run.through(NamedPolicy(name, context_policy(POLICIES[name.split()[0]]), None))
    told = [t for item, t in account(recorded[name].events) if reached_slot(item.response)]
    assert checks["exact"] == checks["checked"] == len(told)
    assert [(r.prompt, r.reused) for r in through.requests] == [(t.prompt, t.reused) for t in told]
    assert [r.new for r in through.requests] == [t.new for t in told]
    assert [r.after_clear for r in through.requests] == [t.after_clear for t in told]
    clears = [e for e in recorded[name].events if e["event"] == "context" and e["cleared"]]
    assert [(c.cleared, c.freed) for c in through.clears] == [(e["cleared"], e["freed_tokens"]) for e in clears]
    assert (name == "none") == (not clears)
    assert sum(r.recomputed for r in through.requests) == sum(t.recomputed or 0 for t in told)


@pytest.mark.parametrize("name", NAMES)
def test_predicted_reuse_is_the_servers_for_every_request(
    recorded: dict[str, Record], name: str, tmp_path: Path
) -> None:
    one = recorded[name]
    with Sources(tmp_path) as sources:
        run, _ = read_run(one, sources)
        rows = predictions(name, one.events, run.prompts, one.folder.server_log)
    assert len(rows) == len(run.material.turns)
    assert all(r.agrees and r.difference is None for r in rows)
    # Of a reply that was cut within its native call only the readable part is known; as text it is all there.
    assert [r.step for r in rows if not r.reply_known] == ([6] if name in POLICIES else [])
    assert all(r.log is not None and f"cached {r.reused}" in r.log for r in rows)


def test_a_difference_has_a_cause_and_the_line_that_shows_it(recorded: dict[str, Record], tmp_path: Path) -> None:
    one = recorded["guarded"]
    events = [dict(e) for e in one.events]
    changed = next(e for e in events if e["event"] == "response" and e["step"] == 3)
    changed["timings"] = changed["timings"] | {
        "cache_n": changed["timings"]["cache_n"] - 7,
        "prompt_n": changed["timings"]["prompt_n"] + 7,
    }
    with Sources(tmp_path) as sources:
        run, _ = read_run(one, sources)
        rows = predictions("x", events, run.prompts, one.folder.server_log)
        again = predictions("x", events, run.prompts, one.folder.server_log, checkpoints=True)
    different = [r for r in rows if not r.agrees]
    assert [(r.step, r.difference) for r in different] == [(3, "unexplained")]
    assert [(r.step, r.difference) for r in again if not r.agrees] == [(3, "checkpoint")]
    assert [r.agrees for r in rows].count(True) == len(rows) - 1


def test_replays_are_paired_and_say_what_they_are(recorded: dict[str, Record], tmp_path: Path) -> None:
    with Sources(tmp_path) as sources:
        found = replay(recorded["none"].folder.path, ["published", "guarded", "none"], n_ctx=WINDOW, sources=sources)
    document = found.document()
    published, guarded, none = (document["policies"][p] for p in found.policies)
    assert document["runs"] == ["none"]
    assert "keeps the model's choices fixed" in document["notes"][0]
    assert guarded["recomputed"] < published["recomputed"]
    assert (published["recomputed_ratio"], guarded["paired_steps"]) == (1.0, 11)
    assert none["stopped_early"] == 1
    assert none["overflows"] == 1
    for values in document["policies"].values():
        assert values["prompt"] == values["reused"] + values["evaluated"]
        assert values["evaluated"] == values["new"] + values["recomputed"]


def test_the_server_check_meets_the_prediction_on_a_server(recorded: dict[str, Record], tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("steps:\n  - {say: x, repeat: forever}\n", encoding="utf-8")
    with (
        Sources(tmp_path) as sources,
        open_scripted(ServerSettings("scripted", WINDOW, scenario=str(file)), tmp_path) as double,
    ):
        run, _ = read_run(recorded["none"], sources)
        done = check(run, NamedPolicy("guarded", context_policy(POLICIES["guarded"]), None), double)
        assert len(done) == 11
        assert all(c.agrees for c in done), [c for c in done if not c.agrees]
        assert len(check(run, NamedPolicy("none", context_policy(POLICIES["none"]), None), double, most=3)) == 3
