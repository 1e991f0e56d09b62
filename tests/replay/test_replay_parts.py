"""The parts of the replay lab: slot, pieces, store, local template, policies by name, the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import record
from typer import Typer
from typer.testing import CliRunner

from analysis.replay.cli import replay_command
from analysis.replay.errors import ReplayError
from analysis.replay.material import material
from analysis.replay.outcome import sums
from analysis.replay.policies import named_policy
from analysis.replay.prompts import Prompts
from analysis.replay.replay import RecordedRun, replay
from analysis.replay.simulated import simulated_events
from analysis.replay.slot import Slot, common_prefix
from analysis.replay.sources import Sources, double_prompts
from analysis.replay.store import TokenStore
from analysis.replay.template import LocalTemplate
from harness.agent.context.cap import CappedResults, capped
from harness.agent.tools.base import ToolError
from harness.serving.pieces import PieceTokens
from harness.serving.scripted import template as double
from harness.serving.scripted.tokenizer import tokenize
from harness.settings import ContextSettings

IDS = st.lists(st.integers(0, 3), max_size=40)


@given(IDS, IDS)
def test_the_common_prefix_is_what_a_loop_finds(a: list[int], b: list[int]) -> None:
    slow = 0
    while slow < min(len(a), len(b)) and a[slow] == b[slow]:
        slow += 1
    assert common_prefix(a, b) == slow
    long = [7] * 1300
    assert common_prefix(long + a, long + b) == 1300 + slow


@given(st.lists(IDS.filter(bool), min_size=1, max_size=6))
def test_a_slot_reuses_the_prefix_and_always_evaluates_one_token(prompts: list[list[int]]) -> None:
    slot, held = Slot(), []
    for prompt in prompts:
        assert slot.take(prompt) == min(common_prefix(prompt, held), len(prompt) - 1)
        slot.wrote([9, 9])
        held = [*prompt, 9, 9]


def test_moved_pieces_are_reused_only_where_nothing_new_stands_before_them() -> None:
    slot = Slot(cache_reuse=4)
    slot.take([1, 2, 10, 11, 12, 13, 20, 21, 22, 23, 24])
    assert slot.take([1, 2, 20, 21, 22, 23, 24, 5]) == 7
    slot.take([1, 2, 10, 11, 12, 13, 20, 21, 22, 23, 24])
    assert slot.take([1, 2, 99, 20, 21, 22, 23, 24, 5]) == 2, "a placeholder ends the search"
    slot.take([1, 2, 10, 11, 20, 21, 22])
    assert slot.take([1, 2, 20, 21, 22, 5]) == 2, "shorter than cache_reuse"


def test_pieces_give_the_whole_texts_tokens_and_ask_for_each_once() -> None:
    asked: list[str] = []

    def counted(text: str, _: bool) -> list[int]:
        asked.append(text)
        return tokenize(text)

    pieces = PieceTokens(counted, {})
    turns = [f"<|im_start|>user\nturn {n} <|not special|> é{'x' * n}<|im_end|>\n" for n in range(9)]
    for n in range(1, 9):
        text = "".join(turns[:n])
        assert pieces.tokens(text) == tokenize(text)
    assert asked.count("<|im_start|>user\nturn 3 <|not special|> éxxx") == 1


def test_a_tokenizer_that_reads_across_markers_is_never_cut() -> None:
    def odd(text: str, _: bool) -> list[int]:
        return [1] if text == "<|im_start|>" else [len(text)]

    pieces = PieceTokens(odd, {})
    text = "<|im_start|>a<|im_start|>b"
    assert pieces.tokens(text) == [len(text)]
    assert pieces.tokens(text + text) == [2 * len(text)]


def test_a_store_keeps_tokens_between_processes_and_does_without_a_disk(tmp_path: Path) -> None:
    store = TokenStore(tmp_path, "ab" * 32)
    store["+é"] = (1, 2, 300000)
    store.close()
    again = TokenStore(tmp_path, "ab" * 32)
    assert again["+é"] == (1, 2, 300000)
    assert "+other" not in again
    again.close()
    nowhere = TokenStore(tmp_path / "ab" / "\0", "ab" * 32)
    nowhere["x"] = (1,)
    assert nowhere["x"] == (1,)
    nowhere.close()


def test_the_template_rendered_here_is_the_doubles_own() -> None:
    local = LocalTemplate(double.source(), {})
    events = simulated_events(3, 5)
    found = material("x", "scripted", events)
    messages = [*found.head, *(m for t in found.turns for m in (t.reply, *t.answers) if m)]
    floats = json.dumps({"path": "<é>&'", "line": 3.0, "deep": [{"x": 2.0}]}, ensure_ascii=False)
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": floats}}
    messages += [{"role": "assistant", "content": "", "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": "c", "content": "<b>"}]
    assert local(messages, found.tools) == double.render({"messages": messages, "tools": found.tools})
    assert LocalTemplate("{{ raise_exception('no') }}", {})(messages, None) is None
    with pytest.raises(ReplayError, match="can't be read"):
        LocalTemplate("{% if %}", {})


def test_policies_by_name_take_settings_of_their_own() -> None:
    made: Any = named_policy("guarded:floor=0.35, keep=1,clear=[results, bodies],result_cap=2000")
    assert (made.policy.floor, made.policy.clearing.keep, made.cap) == (0.35, 1, 2000)
    assert made.policy.clearing.kinds == ("results", "bodies")
    assert made.policy.clearing.ledger
    assert named_policy("kv_shift", 64).policy.name == "kv_shift"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("magic", "no policy named 'magic'; known are none, published"),
        ("guarded:floor", "'floor' is no setting; known are adapt"),
        ("guarded:floor=2", "floor=2 does not fit; it is 0.45 by default"),
        ("guarded:keep=1.5", "keep=1.5 does not fit"),
        ("guarded:ledger=yes please", "ledger=yes please does not fit"),
        ("guarded:clear=[thinking]", "context.ledger: needs results"),
        ("published:trigger=900", "published takes a fraction"),
        ("kv_shift", "--cache-reuse 64"),
    ],
)
def test_a_policy_that_does_not_hold_is_one_line(text: str, line: str) -> None:
    with pytest.raises(ReplayError) as error:
        named_policy(text)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def _run(seed: int, steps: int, scale: float = 1.0) -> RecordedRun:
    found = material(str(seed), "scripted", simulated_events(seed, steps, scale=scale))
    return RecordedRun(found, double_prompts(found))


@pytest.mark.parametrize(
    ("window", "steps", "scale", "reserve"), [(8192, 30, 1.0, 2300), (4096, 30, 0.5, 1150), (32768, 60, 1.0, 2300)]
)
def test_guarded_recomputes_less_than_four_tenths_of_published_at_no_other_cost(
    window: int, steps: int, scale: float, reserve: int
) -> None:
    runs = [_run(seed, steps, scale) for seed in range(2)]
    published = sums([r.through(named_policy("published"), n_ctx=window) for r in runs])
    guarded = sums([r.through(named_policy(f"guarded:trigger={reserve}"), n_ctx=window) for r in runs])
    assert guarded["recomputed_per_step"] <= 0.4 * published["recomputed_per_step"]
    assert guarded["evaluated"] / guarded["steps"] <= published["evaluated"] / published["steps"]
    for column in ("overflows", "cut_by_window", "stopped_early", "rereads_of_cleared"):
        assert guarded[column] <= published[column], column
    assert guarded["steps"] == 2 * steps


def test_what_is_new_is_the_same_under_every_policy() -> None:
    run = _run(5, 12, 0.5)
    names = ("none", "published", "published_before_send", "guarded", "guarded:ledger=false", "guarded:keep=0")
    new = {name: sums([run.through(named_policy(name), n_ctx=1 << 17)])["new"] for name in names}
    assert len(set(new.values())) == 1
    small = sums([run.through(named_policy("guarded"), n_ctx=8192)])
    assert small["steps"] == 12
    assert 0 <= new["none"] - small["new"] < 12 * 8, "a clear may only bring words back by chance"
    none = sums([run.through(named_policy("none"), n_ctx=1 << 17)])
    assert (none["recomputed"], none["amplification"]) == (0, 1.0)


def test_a_summary_is_asked_for_and_counted() -> None:
    through = _run(1, 20).through(named_policy("summarise:trigger=2300"), n_ctx=8192)
    asked = [r for r in through.requests if r.tag == "summary"]
    assert asked
    assert all(r.generated >= 400 for r in asked)
    assert sums([through])["summary_requests"] == len(asked)


def test_a_summarys_own_request_does_not_part_two_clears() -> None:
    """Thrashing is another clear within two requests, as the policy itself is told of it."""
    through = _run(1, 40).through(named_policy("summarise:trigger=0.6"), n_ctx=8192)
    told = sum(c.decision.get("no_summary") is None for c in through.clears)
    assert told > 10
    answered, near, last = 0, 0, None
    clears = list(through.clears)
    for request in through.requests:
        if request.tag == "summary":
            continue
        if request.after_clear:
            near += last is not None and answered - last <= 2
            last = answered
        answered += 1
    assert len(clears) > near > 0
    assert sums([through])["thrashing_clears"] == near


def test_a_capped_result_can_be_read_on() -> None:
    text = "".join(f"{n:05d}\n" for n in range(500))
    results = CappedResults(600)
    shown = results.born("call_1_0", text)
    assert shown == capped(text, "call_1_0", 600)
    assert 'read_more(result="call_1_0", start=450)' in shown
    assert shown.startswith(text[:450])
    assert shown.endswith(text[-150:])
    assert results.born("call_2_0", "short") == "short"
    tool = results.tool()
    hint = re.compile(
        r'\n\[\d+ characters (?:left out here|follow); read_more\(result="(.+?)", start=(\d+)\) shows them\]'
    )
    begun = tool.run(result="call_1_0", start=0)
    for read, part in ((text[:450], shown), (hint.sub("", begun), begun)):
        while found := hint.search(part):
            part = tool.run(result=found[1], start=int(found[2]))
            read += hint.sub("", part)
        assert read == text
    for wrong in ({"result": "call_9_0", "start": 0}, {"result": "call_1_0", "start": 3000}):
        with pytest.raises(ToolError):
            tool.run(**wrong)


@pytest.fixture
def command() -> Typer:
    app = Typer(pretty_exceptions_enable=False)
    app.command()(replay_command)
    return app


def test_the_command_prints_one_json_document(command: Typer, tmp_path: Path) -> None:
    one = record(tmp_path, ContextSettings("published"))
    asked = [str(one.folder.path), "--policy", "published", "--policy", "guarded", "--json", "--predict"]
    ran = CliRunner().invoke(command, asked)
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert set(document["policies"]) == {"published", "guarded"}
    assert {"recomputed", "evaluated", "clears", "overflows"} <= set(document["policies"]["guarded"])
    assert document["runs"] == ["published"]
    assert document["predictions"]["agree"] == document["predictions"]["requests"] == document["prompts_exact"]
    shown = CliRunner().invoke(command, asked[:-2])
    assert "keeps the model's choices fixed" in shown.stdout


def test_one_policy_option_takes_several_names(command: Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = record(tmp_path, ContextSettings("published"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guarded").mkdir()
    runs = str(one.folder.path)

    def policies(*asked: str) -> list[str]:
        ran = CliRunner().invoke(command, [*asked, "--json"])
        assert ran.exit_code == 0, ran.output
        return list(json.loads(ran.stdout)["policies"])

    three = ["published", "guarded", "guarded:floor=0.35,keep=1"]
    assert policies(runs, "--policy", *three) == three
    assert policies("--policy", *three, runs) == three
    assert policies(runs, "--policy", three[0], three[1], "--policy", "none") == ["published", "none", "guarded"]
    for asked, line in (
        ([runs, "--policy", "published", "gaurded"], "gaurded: neither a folder of runs nor a policy"),
        (["--policy", "published", "guarded"], "no runs are named"),
        (["./guarded", "--policy", "published"], "no finished run"),
    ):
        ran = CliRunner().invoke(command, asked)
        assert isinstance(ran.exception, ValueError)
        assert line in str(ran.exception)
        assert "\n" not in str(ran.exception)


def test_runs_that_can_not_be_replayed_are_named(tmp_path: Path) -> None:
    one = record(tmp_path, ContextSettings("none"), n_ctx=1 << 16)
    manifest = one.manifest | {"kind": "real", "run_id": "abc", "model": {"name": "m", "sha256": None}}
    (one.folder.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with Sources(tmp_path) as sources, pytest.raises(ReplayError, match="run abc: it names no model file"):
        replay(tmp_path / "runs", ["published"], sources=sources)
    with Sources(tmp_path) as sources, pytest.raises(ReplayError, match="each of them once"):
        replay(tmp_path / "runs", ["published", "published"], sources=sources)


def test_prompts_keep_to_the_list_they_are_given() -> None:
    found = material("x", "scripted", simulated_events(2, 4))
    prompts: Prompts = double_prompts(found)
    messages = list(found.head)
    first = list(prompts.ids(messages))
    messages.append({"role": "user", "content": "more"})
    assert len(prompts.ids(messages)) > len(first)
    assert prompts.ids(messages[:-1]) == first
