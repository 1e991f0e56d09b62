"""Tokenizer, template and parsing: exact, prefix-stable, and inverse to each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.serving.scripted import filler, template
from harness.serving.scripted.errors import Refused
from harness.serving.scripted.parsing import Parsed, parse
from harness.serving.scripted.reply import Draft, of_size, past
from harness.serving.scripted.tokenizer import EOS, SPECIALS, count, detokenize, pieces, tokenize

from .conftest import TOOLS, tool, user

TEXT = st.text(st.sampled_from("ab Z09_.,(){}\"'<|>\n\t é漢😀")) | st.text()
WITH_SPECIALS = st.lists(TEXT | st.sampled_from(SPECIALS)).map("".join)


@given(WITH_SPECIALS)
def test_tokens_give_the_text_back(text: str) -> None:
    assert detokenize(tokenize(text)) == text
    assert count(text) == len(tokenize(text))


@given(WITH_SPECIALS, st.sampled_from([*SPECIALS, "\n"]), WITH_SPECIALS)
def test_a_special_token_or_a_newline_keeps_what_stands_before(before: str, mark: str, after: str) -> None:
    first = tokenize(before + mark)
    assert tokenize(before + mark + after)[: len(first)] == first or mark == "\n"
    line = tokenize(f"{SPECIALS[0]}assistant\n")
    assert tokenize(f"{SPECIALS[0]}assistant\n{after}")[:3] == line


def test_ids_say_what_the_piece_is() -> None:
    texts = pieces("def main(argv=None):\n    return 12345 + café 😀" + "".join(SPECIALS))
    ids = {text: tokenize(text) for text in texts}
    assert all(len(found) == 1 for found in ids.values())
    assert len({found[0] for found in ids.values()}) == len(set(texts))
    assert all(0 <= found[0] < 2**63 for found in ids.values())
    assert tokenize("<|im_end|>") == [EOS]
    for number in (-1, 15, 2**63):
        with pytest.raises(ValueError, match="no token"):
            detokenize([number])


def test_about_four_characters_are_one_token() -> None:
    prose = "The list prints the date after the title, and an item that is due today is not overdue yet. " * 20
    assert 3.5 < len(prose) / count(prose) < 5


@given(st.integers(0, 400), st.text(max_size=3))
def test_filler_has_the_asked_size(size: int, seed: str) -> None:
    assert count(filler.prose(size, seed)) == size
    assert len(filler.characters(size, seed)) == size


# What a model may write: text without the tags that structure a reply.
PLAIN = TEXT.filter(lambda t: not any(s in t for s in SPECIALS))
ARGUMENTS = st.dictionaries(st.sampled_from(["path", "content", "old", "new"]), PLAIN, max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(["read_file", "bash"]), ARGUMENTS), max_size=3).map(tuple)
DRAFTS = st.builds(Draft, say=PLAIN, think=PLAIN, calls=CALLS)


@given(DRAFTS)
def test_a_reply_is_parsed_to_what_was_written(draft: Draft) -> None:
    parsed = parse(draft.text(), tools=True)
    assert [(name, json.loads(arguments)) for name, arguments in parsed.calls] == [(n, a) for n, a in draft.calls]
    assert parsed.thinking.strip() == draft.think.strip()
    nothing = not (draft.think.strip() or draft.say.strip("\n") or draft.calls)
    said = draft.text() if nothing else draft.say  # where nothing can be made out, the raw text is the content
    assert parsed.content.strip("\n") == said.strip("\n")


def message(parsed: Parsed) -> dict[str, Any]:
    calls = [{"id": "a", "type": "function", "function": {"name": n, "arguments": a}} for n, a in parsed.calls]
    found: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    return (
        found
        | ({"reasoning_content": parsed.thinking} if parsed.thinking else {})
        | ({"tool_calls": calls} if calls else {})
    )


# Leading blank lines of thinking and content are trimmed when a reply is parsed, by llama.cpp too.
TIDY = DRAFTS.filter(
    lambda d: d.think == d.think.strip() and (not d.think or d.say == d.say.lstrip("\n")) and d.text() != ""
)


@given(TIDY, PLAIN)
def test_a_reply_renders_to_what_was_generated(draft: Draft, answer: str) -> None:
    """So that a growing conversation is reused to its last token."""
    head = [user("go")]
    prompt = tokenize(template.render({"messages": head, "tools": TOOLS}))
    generated = tokenize(draft.text())
    reply = message(parse(draft.text(), tools=True))
    grown = tokenize(template.render({"messages": [*head, reply, tool("a", answer)], "tools": TOOLS}))
    assert grown[: len(prompt) + len(generated)] == prompt + generated
    assert grown[len(prompt) + len(generated)] == EOS


@given(DRAFTS.filter(lambda d: d.say.strip()), st.integers(0, 60))
def test_replies_get_exactly_the_asked_size(draft: Draft, more: int) -> None:
    size = draft.tokens() + more
    assert of_size(draft, size, "say").tokens() == size
    assert past(draft, size, "say").tokens() > size


@given(DRAFTS, st.data())
def test_a_cut_reply_never_says_more_than_the_whole(draft: Draft, data: st.DataObject) -> None:
    text = draft.text()
    cut = parse(text[: data.draw(st.integers(0, len(text)))], tools=True, ended=False)
    whole = parse(text, tools=True)
    assert len(cut.calls) <= len(whole.calls)
    for ours, theirs in zip(cut.calls, whole.calls, strict=False):
        assert ours[0] == theirs[0]
        assert theirs[1].startswith(ours[1])


def test_thinking_of_earlier_replies_may_be_left_out() -> None:
    body = {"messages": [user("x"), {"role": "assistant", "content": "y", "reasoning_content": "hm"}, user("z")]}
    assert "<think>" in template.render(body)
    assert "<think>" not in template.render(body, keep_thinking=False)


def test_a_history_that_is_not_json_is_refused_or_rendered_as_it_came() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a": NaN}'}}
    body = {"messages": [user("x"), {"role": "assistant", "content": None, "tool_calls": [call]}, tool("a", "r")]}
    with pytest.raises(Refused, match="Failed to parse tool call arguments as JSON") as refused:
        template.render(body)
    assert refused.value.status == 500
    assert '"arguments": {"a": NaN}}' in template.render(body, check_arguments=False)
