"""Every era in every wrapper: what was written is what is read."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_renderer import FORMATS, WRAPPERS, Format, Spec, expected, wrap

from analysis.server_log import parse, to_json

PLAIN_SPECS = (
    Spec(0, 3, 0, 120, 30, 1200.5, 600.25),
    Spec(0, 40, 149, 33, 12, 300.0, 0.0),
    Spec(1, 60, 5, 1, 1, 12.34, 0.0),
    Spec(0, 75, 20, 400, 7, 4000.07, 140.9, outcome="cancelled"),
    Spec(0, 99, 0, 5000, 0, 0.0, 0.0, outcome="rejected"),
    Spec(1, 120, 66, 900, 14, 1.5, 2.25, outcome="failed"),
    Spec(0, 150, 66, 900, 14, 1.5, 2.25, outcome="failed_after"),
    Spec(0, 200, 0, 4000, 97, 5.5, 9.25, truncated=True),
)


def write(specs: tuple[Spec, ...], form: Format) -> list[str]:
    return [line for spec in specs for line in form.write(spec)]


def possible(form: Format, specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
    return tuple(spec for spec in specs if spec.outcome in form.outcomes and not (form.printf and spec.truncated))


def rows_of(specs: tuple[Spec, ...], form: Format, instance: str | None = None) -> list[dict]:
    extra = {"instance": instance} if instance else {}
    return [expected(spec, form) | extra for spec in specs]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_every_era_in_every_wrapper(form, wrapper, end, tmp_path):
    specs = possible(form, PLAIN_SPECS)
    path = tmp_path / "server.log"
    path.write_bytes("".join(line + end for line in wrap(write(specs, form), wrapper)).encode())
    document = to_json(parse(path))
    assert document["requests"] == rows_of(specs, form, "42027" if "router" in wrapper else None)
    assert document["era"] == form.era
    name = re.sub(r" (no host|no pid|short-\w+)", "", wrapper)
    if end == "\r\n":
        name = "crlf" if name == "plain" else f"{name}+crlf"
    assert document["wrapper"] == name
    assert document["warnings"] == []


counts = st.integers(0, 200_000)
milliseconds = st.integers(0, 10**8).map(lambda hundredths: hundredths / 100)


@st.composite
def spec_lists(draw, form: Format) -> tuple[Spec, ...]:
    tasks = sorted(draw(st.sets(st.integers(0, 10**6), min_size=1, max_size=6)))
    specs = []
    for task in tasks:
        specs.append(
            Spec(
                slot=draw(st.integers(0, 40)),
                task=task,
                cached=draw(counts),
                processed=draw(st.integers(1, 200_000)),
                generated=draw(st.integers(1, 200_000)),
                prompt_ms=draw(milliseconds),
                eval_ms=draw(milliseconds),
                outcome=draw(st.sampled_from(form.outcomes)),
                truncated=not form.printf and draw(st.booleans()),
                system=draw(st.sampled_from([0, 0, 969])) if form.era == "B" else 0,
            )
        )
    return tuple(specs)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), form=st.sampled_from(FORMATS), wrapper=st.sampled_from(sorted(WRAPPERS)))
def test_any_values_come_back(data, form, wrapper):
    specs = data.draw(spec_lists(form))
    document = to_json(parse(wrap(write(specs, form), wrapper)))
    assert document["requests"] == rows_of(specs, form, "42027" if "router" in wrapper else None)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), form=st.sampled_from([form for form in FORMATS if form.era in "CDE"]))
def test_slots_working_at_once(data, form):
    """Lines of several slots in any order: a timing header and its untagged lines stay one message."""
    specs = [
        Spec(slot, 100 + slot, data.draw(counts), data.draw(st.integers(1, 9999)), 5, 1.5, 2.5)
        for slot in range(data.draw(st.integers(2, 3)))
    ]
    waiting = [messages(form.write(spec)) for spec in specs]
    launches: list[int] = []
    lines: list[str] = []
    while any(waiting):
        chosen = data.draw(st.sampled_from([index for index, rest in enumerate(waiting) if rest]))
        message = waiting[chosen].pop(0)
        if any("processing task" in line for line in message):
            launches.append(chosen)
        lines += message
    rows = to_json(parse(lines))["requests"]
    assert rows == [expected(specs[index], form) for index in launches]


def messages(lines: list[str]) -> list[list[str]]:
    """Lines grouped as the server writes them: untagged continuation lines go with their header."""
    grouped: list[list[str]] = []
    for line in lines:
        if line.lstrip("\r ").startswith(("prompt eval", "eval", "total")):
            grouped[-1].append(line)
        else:
            grouped.append([line])
    return grouped


def test_timings_of_era_a_find_their_slot():
    """Two slots finish in the same update: both blocks come before both releases."""
    lines = [
        "slot 0 is processing [task id: 1]",
        "slot 1 is processing [task id: 2]",
        "slot 0 : in cache: 0 tokens | to process: 10 tokens",
        "slot 1 : in cache: 4 tokens | to process: 20 tokens",
        "print_timings: prompt eval time =      20.00 ms /    20 tokens (    1.00 ms per token,  1000.00 tokens per second)",
        "print_timings:        eval time =      50.00 ms /     5 runs   (   10.00 ms per token,   100.00 tokens per second)",
        "print_timings: prompt eval time =      10.00 ms /    10 tokens (    1.00 ms per token,  1000.00 tokens per second)",
        "print_timings:        eval time =      70.00 ms /     7 runs   (   10.00 ms per token,   100.00 tokens per second)",
        "slot 0 released (17 tokens in cache)",
        "slot 1 released (29 tokens in cache)",
    ]
    rows = parse(lines).requests
    assert [(row.task, row.processed_tokens, row.generated_tokens) for row in rows] == [(1, 10, 7), (2, 20, 5)]


def test_era_a_without_prompt_caching():
    """No in-cache line: the prompt follows from the cache count, and with it that nothing was reused."""
    lines = [
        "slot 0 is processing [task id: 1]",
        "slot 0 : kv cache rm - [0, end)",
        "print_timings: prompt eval time =      10.00 ms /    10 tokens (    1.00 ms per token,  1000.00 tokens per second)",
        "print_timings:        eval time =      70.00 ms /     7 runs   (   10.00 ms per token,   100.00 tokens per second)",
        "slot 0 released (17 tokens in cache)",
    ]
    (row,) = to_json(parse(lines))["requests"]
    assert (row["prompt_tokens"], row["cached_tokens"]) == (None, None)
    assert (row["prompt_tokens_derived"], row["cached_tokens_derived"]) == (10, 0)


def test_formats_cover_every_era():
    assert {form.era for form in FORMATS} == set("ABCDE")
    assert len(list(itertools.product(FORMATS, WRAPPERS))) == 14 * 23
