"""The token accounting against an oracle that labels every token of every prompt by the content it belongs to."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_runs import LONG, TOOLS, Recorder
from toy_slot import body, render, tokenize

from harness.record.accounting import CAUSES, account
from harness.record.counting import count_requests
from harness.record.events import read_events


def labelled(items: list[tuple[int, dict[str, Any], bool]]) -> list[tuple[str, Any]]:
    """(token, label) of a prompt; items: (identity, message, is a placeholder)."""
    out: list[tuple[str, Any]] = [
        (t, "tools") for t in tokenize(render([], TOOLS).removesuffix("<|im_start|>assistant\n"))
    ]
    last_user = max((i for i, (_, m, _) in enumerate(items) if m["role"] == "user"), default=-1)
    before: Any = None
    for i, (uid, message, placeholder) in enumerate(items):
        out.append(("<|im_start|>", ("turn", before)))
        out += [(t, ("header", before, message["role"])) for t in (message["role"], "\n")]
        text = body(message, thinking=i > last_user)
        out += [(t, "placeholder" if placeholder else ("body", uid)) for t in tokenize(text)]
        out += [("<|im_end|>", ("close", uid)), ("\n", ("close", uid))]
        before = uid
    return [
        *out,
        ("<|im_start|>", ("turn", before)),
        ("assistant", ("header", before, "assistant")),
        ("\n", ("header", before, "assistant")),
    ]


def oracle(events: list[dict[str, Any]]) -> list[int]:
    """New tokens of every request that reached the slot: evaluated ones whose label the slot never held."""
    items: list[tuple[int, dict[str, Any], bool]] = []
    held: set[Any] = {"placeholder"}
    found, made, prompt = [], 0, []
    for event in events:
        if event["event"] == "message":
            reply = event["message"]["role"] == "assistant"
            if reply:
                held.add(("body", made))
            items.append((made, event["message"], False))
            made += 1
        elif event["event"] == "context":
            # The recorder's clear keeps places, so the identity at a place stays.
            items = [
                items[new] if isinstance(new, int) else (items[i][0], new, True) for i, new in enumerate(event["after"])
            ]
        elif event["event"] == "request":
            prompt = labelled(items)
        elif event["event"] == "response" and event["outcome"] in ("reply", "cut"):
            assert len(prompt) == event["timings"]["cache_n"] + event["timings"]["prompt_n"]
            found.append(sum(label not in held for _, label in prompt[event["timings"]["cache_n"] :]))
            held |= {label for _, label in prompt}
    return found


WORDS = st.text(alphabet="abc .", min_size=1, max_size=60).map(lambda t: "x" + t)
STEPS = st.one_of(
    st.tuples(st.just("read"), WORDS, st.booleans()),
    st.tuples(st.just("say"), WORDS, st.booleans()),
    st.tuples(st.just("clear"), st.integers(0, 2)),
    st.tuples(st.just("cut"), st.booleans()),
    st.tuples(st.just("overflow"), st.just(0)),
)


def play(run: Recorder, steps: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    for step in steps:
        if step[0] == "read":
            run.reply(step[1], ("read_file", {"path": "a.py"}), step[1] * 3, thinking="why so" if step[2] else None)
        elif step[0] == "say":
            run.reply(step[1], thinking="why so" if step[2] else None)
            run._append({"role": "user", "content": "pytest fails"})
        elif step[0] == "clear":
            run.clear(keep=step[1] or 1)
        elif step[0] == "cut":
            run.reply("word " * 4000, drop=step[1])
        else:
            run.overflow()
            run.step += 1
    return list(read_events(run.finish("step_limit").events))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=9))
def test_new_is_what_the_slot_never_held(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = play(Recorder(Path(folder), n_ctx=9000), steps)
    rows = [t for item, t in account(events) if item.response and item.response["outcome"] != "overflow"]
    assert [t.new for t in rows] == oracle(events)
    for t in rows:
        assert t.prompt == t.reused + t.evaluated
        assert t.evaluated == t.new + t.recomputed
        assert min(t.reused, t.evaluated, t.new, t.recomputed) >= 0
        assert t.cause in CAUSES
        assert t.cause != "unexplained"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=7))
def test_without_counts_nothing_is_guessed(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = play(Recorder(Path(folder), n_ctx=9000), steps)
    bare = [e for e in events if e["event"] != "count"]
    with_counts = [t.new for _, t in account(events)]
    without = [t.new for _, t in account(bare)]
    assert all(b is None or a == b for a, b in zip(with_counts, without, strict=True))


def test_an_append_only_run_computes_nothing_twice(tmp_path: Path) -> None:
    run = Recorder(tmp_path, counts=False)
    for _ in range(4):
        run.reply("next", ("read_file", {"path": "a.py"}), LONG)
    rows = [t for _, t in account(list(read_events(run.finish().events)))]
    assert [t.cause for t in rows] == ["cold", "append", "append", "append"]
    assert all(t.recomputed == 0 for t in rows)


def test_the_same_request_again_has_nothing_new(tmp_path: Path) -> None:
    run = Recorder(tmp_path, counts=False)
    message = {"role": "assistant", "content": "hello"}
    run._request(message, False)
    run._request(message, False)
    first, second = [t for _, t in account(list(read_events(run.finish().events)))]
    assert (second.evaluated, second.new, second.recomputed) == (1, 0, 1)
    assert first.new == first.evaluated == first.prompt


def test_a_clear_is_named_and_split(tmp_path: Path) -> None:
    run = Recorder(tmp_path, n_ctx=8192)
    run.reply("a", ("read_file", {"path": "a.py"}), LONG)
    run.reply("b", ("read_file", {"path": "b.py"}), LONG)
    run.reply("c", ("read_file", {"path": "c.py"}), "short")
    run.clear(keep=1)
    run.reply("d")
    last = [t for _, t in account(list(read_events(run.finish().events)))][-1]
    assert last.cause == "clear"
    assert last.after_clear
    assert last.new < 20 < last.recomputed


def test_lost_reuse_is_a_checkpoint_or_an_alarm(tmp_path: Path) -> None:
    run = Recorder(tmp_path, n_ctx=8192)
    run.reply("a", ("read_file", {"path": "a.py"}), LONG)
    run.slot.held = run.slot.held[:40]  # the server forgot most of what it held
    run.reply("b")
    events = list(read_events(run.finish().events))
    assert [t.cause for _, t in account(events)][-1] == "unexplained"
    assert [t.cause for _, t in account(events, checkpoints=True)][-1] == "checkpoint"
    last = [t for _, t in account(events)][-1]
    assert last.recomputed > 200


def test_a_count_of_another_prompt_is_not_used(tmp_path: Path) -> None:
    run = Recorder(tmp_path, n_ctx=8192)
    run.reply("a", ("read_file", {"path": "a.py"}), LONG)
    run.reply("b", ("read_file", {"path": "b.py"}), LONG)
    run.clear()
    run.reply("c")
    events = [e | {"prompt": e["prompt"] + 1} if e["event"] == "count" else e for e in read_events(run.finish().events)]
    last = [t for _, t in account(events)][-1]
    assert (last.cause, last.new, last.recomputed) == ("clear", None, None)


@pytest.mark.parametrize("failing", ["render", "tokenize"])
def test_a_server_without_the_endpoints_gives_no_counts(tmp_path: Path, failing: str) -> None:
    run = Recorder(tmp_path, counts=False)
    run.reply("a")
    events = list(read_events(run.finish().events))
    silent_render = (lambda messages, tools: None) if failing == "render" else render
    silent_tokenize = (lambda text, *, add_special: None) if failing == "tokenize" else tokenize
    assert list(count_requests(events, silent_render, silent_tokenize)) == []
