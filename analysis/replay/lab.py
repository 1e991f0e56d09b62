"""One recorded run through one context policy: the loop's order of things, the model's recorded choices, exact tokens.

As the agent loop does: the policy is asked before sending; a request that does not fit is cleared and sent once more; after the
reply the policy is asked again, before the reply joins the list. A reply that has no room left in the window is cut there,
thrown away and asked for again after the loop's notice, twice at most; a request that can't be sent ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.replay.births import Birth
from analysis.replay.material import Material, Turn
from analysis.replay.prompts import Prompts
from analysis.replay.slot import Slot
from harness.agent.context.base import ContextPolicy, ContextState, When
from harness.agent.context.cap import capped
from harness.agent.context.history import ClearHistory
from harness.agent.notices import CUT_NOTICE
from harness.record.behaviour import rereads_of_cleared
from harness.record.conversation import Message, encode_change

ATTEMPTS = 3
# Told of every message list that is sent, in order.
OnRequest = Callable[[Sequence[Message]], None]


@dataclass(frozen=True)
class Request:
    """One request that reached the slot; tokens. turn: number of the recorded turn it stands for. tag: agent or summary."""

    turn: int
    tag: str
    prompt: int
    reused: int
    new: int
    generated: int
    after_clear: bool
    cut: bool

    @property
    def evaluated(self) -> int:
        return self.prompt - self.reused

    @property
    def recomputed(self) -> int:
        return self.evaluated - self.new


@dataclass(frozen=True)
class Clear:
    """One clear. freed: tokens. before: how many requests of the agent were answered by then; summaries are none of its."""

    turn: int
    when: When
    cleared: int
    freed: int
    before: int
    decision: dict[str, Any]


@dataclass
class Through:
    """What became of one run under one policy. turns: recorded turns that were played. ended: why it stopped early, or None."""

    run: str
    policy: str
    n_ctx: int
    turns: int = 0
    requests: list[Request] = field(default_factory=list)
    clears: list[Clear] = field(default_factory=list)
    cleared_nothing: int = 0
    overflows: int = 0
    cut_by_window: int = 0
    rereads: int = 0
    ended: str | None = None


@dataclass
class _Play:
    material: Material
    policy: ContextPolicy
    prompts: Prompts
    births: Sequence[Birth]
    cap: int | None
    n_ctx: int
    max_tokens: int | None
    slot: Slot
    out: Through
    messages: list[Message]
    history: ClearHistory = field(default_factory=ClearHistory)
    events: list[dict[str, Any]] = field(default_factory=list)
    unborn: int = 0
    just_cleared: bool = False
    turn: int = 0
    on_request: OnRequest | None = None

    def run(self) -> Through:
        self.events += [{"event": "message", "message": m} for m in self.messages]
        for number, turn in enumerate(self.material.turns):
            self.turn = number
            self.unborn += self.births[number].new
            if not self._ask(turn):
                break
            self.out.turns += 1
            self._answer(turn)
        self.out.rereads = sum(1 for _ in rereads_of_cleared(self.events))
        return self.out

    def _ask(self, turn: Turn) -> bool:
        """Sends until the recorded reply has found room; False when the run ends here."""
        for _ in range(ATTEMPTS):
            if not self._fits():
                self.out.ended = "context_exhausted"
                return False
            ids = self.prompts.ids(self.messages)
            room = self.n_ctx - len(ids)
            cut = turn.generated > room
            written = min(turn.generated, room)
            self._evaluate("agent", self.messages, ids, written, cut)
            held = self.births[self.turn].body
            self.slot.wrote(held[: max(0, written - 1)])
            self._manage("after_reply", len(ids) + written)
            if not cut or turn.reply is None:
                return True
            self.out.cut_by_window += 1
            before = self.prompts.count(self.messages)
            self._append({"role": "user", "content": CUT_NOTICE.format(n_ctx=self.n_ctx)})
            self.unborn += self.prompts.count(self.messages) - before
        self.out.ended = "reply_unusable"
        return False

    def _fits(self) -> bool:
        """The policy before sending, and once more when the server would refuse. A prompt must leave room for one token."""
        self._manage("before_send", None)
        for last in (False, True):
            if self.prompts.count(self.messages) < self.n_ctx:
                return True
            self.out.overflows += 1
            if last or not self._manage("overflow", None):
                break
        return False

    def _answer(self, turn: Turn) -> None:
        if turn.reply is not None:
            self._append(turn.reply)
        for message in turn.answers:
            self._append(born(message, self.cap))
        self.events += [
            {"event": "call"} | {k: c.get(k) for k in ("id", "name", "arguments", "ok")} for c in turn.calls
        ]

    def _manage(self, when: When, total: int | None) -> bool:
        state = ContextState(
            messages=self.messages,
            n_ctx=self.n_ctx,
            max_tokens=self.max_tokens,
            total_tokens=total,
            count=self.prompts.count,
            since_clear=self.history.since_clear,
            thrashes=self.history.thrashes,
            summarise=self._summary,
        )
        change = self.policy.decide(when, state)
        if change is None:
            return False
        if not change.cleared:
            self.out.cleared_nothing += 1
            return False
        freed = self.prompts.count(self.messages) - self.prompts.count(change.messages)
        answered = sum(r.tag == "agent" for r in self.out.requests)
        self.out.clears.append(Clear(self.turn, when, change.cleared, freed, answered, change.decision))
        self.events.append({"event": "context", "after": encode_change(self.messages, change.messages)})
        self.messages = change.messages
        self.history.cleared()
        self.just_cleared = True
        return True

    def _summary(self, asked: list[Message], most: int) -> str | None:
        """A stand-in of `most` tokens or so for a summary that no model writes here; its request is counted in full."""
        text = " ".join(["word"] * most)
        ids = self.prompts.ids(asked)
        if len(ids) + most > self.n_ctx:
            return None
        self.unborn += len(ids) - self.prompts.count(self.messages)  # the question was never held either
        body = self.prompts.body(asked, {"role": "assistant", "content": text}) or []
        self._evaluate("summary", asked, ids, len(body), False)
        self.slot.wrote(body)
        return text

    def _evaluate(self, tag: str, messages: list[Message], ids: list[int], written: int, cut: bool) -> None:
        if self.on_request is not None:
            self.on_request(messages)
        reused = self.slot.take(ids)
        new = min(len(ids) - reused, self.unborn)
        self.unborn = 0
        self.out.requests.append(Request(self.turn, tag, len(ids), reused, new, written, self.just_cleared, cut))
        self.just_cleared = False
        if tag == "agent":
            self.history.answered()

    def _append(self, message: Message) -> None:
        self.messages = [*self.messages, message]
        self.events.append({"event": "message", "message": message})


def born(message: Message, cap: int | None) -> Message:
    """A result as an agent with that cap would have got it."""
    if cap is None or message["role"] != "tool":
        return message
    text = message["content"] or ""
    shown = capped(text, message["tool_call_id"], cap)
    return message if shown is text else message | {"content": shown}


def play(
    material: Material,
    policy: ContextPolicy,
    prompts: Prompts,
    births: Sequence[Birth],
    *,
    name: str,
    cap: int | None = None,
    n_ctx: int | None = None,
    cache_reuse: int = 0,
    on_request: OnRequest | None = None,
) -> Through:
    """Plays one run through one policy.

    births: of this run under the same cap (births.births). n_ctx: another window than the recorded one. cache_reuse: as if the
    server moved cached pieces of at least so many tokens (idealised: every piece that could be moved is).
    """
    window = n_ctx or material.n_ctx
    return _Play(
        material=material,
        policy=policy,
        prompts=prompts,
        births=births,
        cap=cap,
        n_ctx=window,
        max_tokens=material.max_tokens,
        slot=Slot(cache_reuse),
        out=Through(material.run, name, window),
        messages=list(material.head),
        on_request=on_request,
    ).run()
