"""What each turn adds to a conversation that is only ever appended to; the same under every policy.

`new` is what a request evaluates of content the slot never held. In a conversation that only grows that is everything behind
the last reply, so it is measured there once. A reply's own tokens were held when it was written; whether the next prompt
meets them again depends on how the template renders the reply, which the recorded run shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.replay.material import Material, Turn
from analysis.replay.prompts import Prompts
from analysis.replay.slot import common_prefix
from harness.record.conversation import Message


@dataclass(frozen=True)
class Birth:
    """new: tokens of fresh content in this turn's prompt. body: the reply's tokens that the slot holds: as sampled where the
    server told them, else those that the next prompt met again. exact: they were told, or the reply as rendered has as many
    tokens as the model wrote, so they are taken to be the same."""

    new: int
    body: tuple[int, ...]
    exact: bool


def births(material: Material, prompts: Prompts, answers: Sequence[Sequence[Message]] | None = None) -> list[Birth]:
    """One Birth per turn. answers: what each turn got back, where it is not what was recorded (a cap on results)."""
    messages = list(material.head)
    out: list[Birth] = []
    before: list[int] | None = None  # the conversation up to the end of the last reply, as tokens
    for number, turn in enumerate(material.turns):
        ids = prompts.ids(messages)
        new = len(ids) if number == 0 else _new(ids, before, messages, material.turns[number - 1], prompts)
        body = None if turn.reply is None else prompts.body(messages, turn.reply)
        exact = body is not None and len(body) == turn.generated - (0 if turn.cut else 1)
        later = material.turns[number + 1] if number + 1 < len(material.turns) else None
        met = tuple(body[: _kept(turn, later, body, exact)]) if body else ()
        out.append(Birth(new, met if turn.tokens is None else turn.tokens[:-1], exact or turn.tokens is not None))
        # A dropped reply leaves the prompt's last turn mark to be met again, a rendered one itself.
        before = ids if turn.reply is None else None if body is None else ids + body
        got = turn.answers if answers is None else answers[number]
        messages = [*messages, *([] if turn.reply is None else [turn.reply]), *got]
    return out


def _new(ids: list[int], before: list[int] | None, messages: list[Message], last: Turn, prompts: Prompts) -> int:
    if before is not None:
        return len(ids) - common_prefix(ids, before)
    # The template renders earlier messages anew (it drops thinking, say): what the answers add is the difference they make.
    return len(ids) - prompts.count(messages[: len(messages) - len(last.answers)])


def _kept(turn: Turn, later: Turn | None, body: list[int] | None, exact: bool) -> int:
    """How many of the reply's tokens are met again: as many as the recorded run reused, else all when they are its own."""
    if body is None:
        return 0
    most = min(len(body), max(0, turn.generated - 1))
    if later is not None and later.reused is not None and turn.prompt is not None and later.reused > turn.prompt:
        return min(most, later.reused - turn.prompt)
    return most if exact else 0
