"""kv_shift: for a server that really moves cached tokens (`--cache-reuse`): clear little, oldest first, and often.

What stands behind a placeholder keeps its place in the cache there, so a clear costs little and information is what counts:
only as much goes, oldest first, as brings the request under the floor. Where the server does not shift, this is the worst
of policies, so the settings refuse it unless the probe has shown that it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness.agent.context.base import ContextChange, ContextState, When
from harness.agent.context.clearing import Clearing, after_refusal, changed, clear
from harness.agent.context.size import Sizer
from harness.agent.context.steps import is_result
from harness.agent.context.trigger import limit
from harness.record.conversation import Message


@dataclass(frozen=True)
class KvShift:
    """trigger: see trigger.limit. floor: fraction of the window that a clear aims at."""

    trigger: float | None = None
    floor: float = 0.45
    clearing: Clearing = field(default_factory=Clearing)
    name: str = "kv_shift"

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
            after = self._until_small(state, sizer, most)
        reason = (
            f"{size} tokens are over the limit of {most}" if when == "before_send" else "the server refused the request"
        )
        decision = {"size": size, "size_is": sizer.how, "limit": most, "after": sizer.tokens(after)}
        return ContextChange(after, changed(state.messages, after), reason, decision)

    def _until_small(self, state: ContextState, sizer: Sizer, most: int) -> list[Message]:
        """Oldest results first until the floor is reached; under `keep` only to get below the limit, under 1 into the window."""
        aim = min(most, self.floor * state.n_ctx)
        after = list(state.messages)
        most_kept = max(self.clearing.keep, sum(map(is_result, after)) - 2)  # the task looks like a result
        for keep in range(most_kept, -1, -1):
            goal = aim if keep >= self.clearing.keep else most if keep else state.n_ctx
            if sizer.tokens(after) <= goal:
                break
            after = clear(state.messages, replace(self.clearing, keep=keep), state.n_ctx)
        return after
