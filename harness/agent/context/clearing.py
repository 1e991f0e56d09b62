"""How much of a conversation is taken out: placeholders, dropped thinking and bodies, or whole steps for a ledger.

`Clearing` says what may go; `clear` makes the new list. It depends on the list alone, keeps order and pairing, never touches
the head, and does nothing the second time: clear(clear(x)) == clear(x).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.agent.context.memory import ledger_lines
from harness.agent.context.published import BODIES, CLEARED_MARK, body_placeholder, result_placeholder
from harness.agent.context.steps import Step, Transcript, is_result, transcript, without_old_notices
from harness.agent.tools.base import parse_arguments
from harness.record.conversation import Message

KINDS = ("results", "thinking", "bodies")


@dataclass(frozen=True)
class Clearing:
    """What a clear takes out. kinds: of KINDS. keep: newest results that stay; keep_thinking: newest replies that keep theirs.

    ledger: steps older than the kept results leave as a whole, each call of theirs becomes one line of the memory message;
    otherwise they stay as they are, with placeholders in them.
    """

    kinds: tuple[str, ...] = KINDS
    keep: int = 2
    keep_thinking: int = 1
    ledger: bool = False


def clear(messages: Sequence[Message], how: Clearing, n_ctx: int) -> list[Message]:
    """The list after a clear. n_ctx: the window in tokens, which bounds the ledger."""
    t = transcript(without_old_notices(messages))
    border = _border(t.steps, how.keep)
    if border is None:
        return Transcript(t.head, t.memory, _thinned(t.steps, how, None)).messages()
    if how.ledger and "results" in how.kinds:
        gone, kept = t.steps[: border[0]], t.steps[border[0] :]
        memory = t.memory.with_lines([line for s in gone for line in ledger_lines(s.messages)], n_ctx)
        return Transcript(t.head, memory, _thinned(kept, how, (0, border[1]))).messages()
    return Transcript(t.head, t.memory, _thinned(t.steps, how, border)).messages()


def after_refusal(messages: Sequence[Message], how: Clearing, n_ctx: int) -> list[Message]:
    """The list after the server refused it, whatever was counted: one result stays, none where that changes nothing."""
    for keep in (1, 0):
        after = clear(messages, replace(how, keep=keep), n_ctx)
        if changed(messages, after):
            return after
    return list(messages)


def changed(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many messages of `before` are not in `after` as they were."""
    kept, start = 0, 0
    for message in before:
        found = next((i for i in range(start, len(after)) if after[i] is message or after[i] == message), None)
        if found is not None:
            kept, start = kept + 1, found + 1
    return len(before) - kept


def _border(steps: Sequence[Step], keep: int) -> tuple[int, int] | None:
    """(step, place in it) of the oldest result that stays; None when nothing is older. keep=0: the last step, its end."""
    places = [(n, i) for n, step in enumerate(steps) for i in step.results()]
    if keep == 0:
        return (len(steps) - 1, len(steps[-1].messages)) if steps else None
    return places[-keep] if len(places) > keep else None


def _thinned(steps: Sequence[Step], how: Clearing, border: tuple[int, int] | None) -> tuple[Step, ...]:
    """The steps with placeholders for results before the border, and without old thinking and bodies."""
    thinkers = [n for n, s in enumerate(steps) if s.reply is not None and s.reply.get("reasoning_content")]
    keeps_thinking = set(thinkers[-how.keep_thinking :] if how.keep_thinking else ())
    out = []
    for n, step in enumerate(steps):
        messages = list(step.messages)
        if step.reply is not None:
            thinking = "thinking" in how.kinds and n not in keeps_thinking
            messages[0] = _thinner(step.reply, thinking=thinking, bodies="bodies" in how.kinds)
        if border is not None and "results" in how.kinds:
            messages = [_placeheld(m) if (n, i) < border else m for i, m in enumerate(messages)]
        out.append(Step(tuple(messages)))
    return tuple(out)


def _placeheld(message: Message) -> Message:
    text = message.get("content") or ""
    if not is_result(message) or text.startswith(CLEARED_MARK):
        return message
    short = result_placeholder(text) if message["role"] == "tool" else body_placeholder(text)
    return message | {"content": short} if len(short) < len(text) else message


def _thinner(reply: Message, *, thinking: bool, bodies: bool) -> Message:
    """The reply without its thinking and bodies; the very same object when there is nothing to take out."""
    out = {k: v for k, v in reply.items() if k != "reasoning_content"} if thinking else reply
    calls = reply.get("tool_calls")
    if bodies and calls:
        shorter = [_without_bodies(c) for c in calls]
        if any(a is not b for a, b in zip(calls, shorter, strict=True)):
            # What the model wrote to the letter (`raw`) holds the bodies; the protocol renders the changed calls anew.
            out = {k: v for k, v in out.items() if k != "raw"} | {"tool_calls": shorter}
    return reply if out == reply else out


def _without_bodies(call: dict[str, Any]) -> dict[str, Any]:
    arguments = parse_arguments(call["function"]["arguments"])
    if arguments is None:
        return call
    long = {k: body_placeholder(v) for k, v in arguments.items() if k in BODIES and _is_body(v)}
    if not long:
        return call
    text = json.dumps(arguments | long, ensure_ascii=False)
    return call | {"function": call["function"] | {"arguments": text}}


def _is_body(value: Any) -> bool:
    return isinstance(value, str) and not value.startswith(CLEARED_MARK) and len(body_placeholder(value)) < len(value)
