"""guarded: clear before sending, as late as is safe and then deeply, so that clears are rare and the cache mostly holds.

Recomputing per step costs about (L - P) * g / (H - L): H the trigger, L the size after a clear, g the growth per step, P the
unchanged prefix. So H is as high as the reply's reserve allows, and L is brought under `floor`: when what `keep` results leave
is still above it, one result is kept.

The promise: a request that was looked at has at most `limit` tokens, or nothing but the head, the memory and the newest step
is left; and it has at most n_ctx, or not even that step's results are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from harness.agent.context.base import ContextChange, ContextState, When
from harness.agent.context.clearing import Clearing, after_refusal, changed, clear
from harness.agent.context.history import is_thrash
from harness.agent.context.size import Sizer
from harness.agent.context.trigger import limit
from harness.record.conversation import Message


@dataclass(frozen=True)
class Guarded:
    """trigger: see trigger.limit. floor: fraction of the window. clear_at_least: tokens a clear must free to be made.

    adapt: after each clear that came within two requests of the one before, keep one result fewer (never under 1), then no
    thinking: a larger gap between trigger and floor is what ends thrashing.
    """

    trigger: float | None = None
    floor: float = 0.45
    clearing: Clearing = field(default_factory=lambda: Clearing(ledger=True))
    clear_at_least: int = 0
    adapt: bool = False
    name: str = "guarded"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        if when == "after_reply":
            return None
        sizer = Sizer(state)
        size, most = sizer.tokens(state.messages), limit(self.trigger, state)
        if when == "before_send" and size <= most:
            return None
        if when == "overflow":
            after = after_refusal(state.messages, self.clearing, state.n_ctx)
        else:
            after = self._first_that_does(state, sizer, most)
        freed = size - sizer.tokens(after)
        cleared = changed(state.messages, after)
        reason = (
            f"{size} tokens are over the limit of {most}" if when == "before_send" else "the server refused the request"
        )
        decision = {
            "size": size,
            "size_is": sizer.how,
            "limit": most,
            "after": size - freed,
            "thrash": is_thrash(state.since_clear),
        }
        if cleared == 0:
            return ContextChange(list(state.messages), 0, f"{reason}; nothing is left to clear", decision)
        if when == "before_send" and freed < self.clear_at_least and size <= state.n_ctx:
            reason = f"{reason}; a clear would free {freed} tokens, fewer than {self.clear_at_least}"
            return ContextChange(list(state.messages), 0, reason, decision)
        return ContextChange(after, cleared, f"{reason}; freed {freed} tokens", decision)

    def _first_that_does(self, state: ContextState, sizer: Sizer, most: int) -> list[Message]:
        """The first rung, from mild to deep, under the floor and the limit; no result at all only to get into the window."""
        after: list[Message] = []
        for how in self._rungs(state):
            if after and how.keep == 0 and sizer.tokens(after) <= state.n_ctx:
                break
            after = clear(state.messages, how, state.n_ctx)
            if sizer.tokens(after) <= min(most, self.floor * state.n_ctx):
                break
        return after

    def _rungs(self, state: ContextState) -> Iterator[Clearing]:
        base, keep = self.clearing, self.clearing.keep
        if self.adapt:
            base = replace(base, keep_thinking=0) if state.thrashes >= keep else base
            keep = max(min(keep, 1), keep - state.thrashes)
        for each in sorted({keep, min(keep, 1), 0}, reverse=True):
            yield replace(base, keep=each)
