"""kv_shift: for a server that really moves cached tokens (`--cache-reuse`): old steps leave, nothing takes their place.

llama.cpp looks for moved pieces only where the new prompt goes on with tokens that stand further back in the cache. A
placeholder or a ledger line at that spot is new text, so it would end the search and lose the whole tail: a clear here is a
plain removal of the oldest steps, as few as bring the request under the floor. What is left was computed while the removed
text was still there. Where the server does not shift, each clear costs the tail, so the settings refuse this policy unless
the probe has seen moved cache reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.agent.context.base import ContextChange, ContextState, When
from harness.agent.context.clearing import changed
from harness.agent.context.size import Sizer
from harness.agent.context.steps import transcript
from harness.agent.context.trigger import limit
from harness.record.conversation import Message


@dataclass(frozen=True)
class KvShift:
    """trigger: see trigger.limit. floor: fraction of the window. keep: newest results that stay while they fit."""

    trigger: float | None = None
    floor: float = 0.45
    keep: int = 2
    name: str = "kv_shift"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        if when == "after_reply":
            return None
        sizer = Sizer(state)
        size, most = sizer.tokens(state.messages), limit(self.trigger, state)
        if when == "before_send" and size <= most:
            return None
        refused = when == "overflow"
        after = without_old_steps(state.messages, 1) if refused else self._until_small(state, sizer, most)
        reason = "the server refused the request" if refused else f"{size} tokens are over the limit of {most}"
        decision = {"size": size, "size_is": sizer.how, "limit": most, "after": sizer.tokens(after)}
        return ContextChange(after, changed(state.messages, after), reason, decision)

    def _until_small(self, state: ContextState, sizer: Sizer, most: int) -> list[Message]:
        """Steps leave, oldest first, until the floor is reached; those of the `keep` newest results only for the limit."""
        steps = transcript(state.messages).steps
        after = list(state.messages)
        for left in range(len(steps) - 1, 0, -1):
            spared = sum(len(step.results()) for step in steps[-left:]) >= self.keep
            after = without_old_steps(state.messages, left)
            if sizer.tokens(after) <= (min(most, self.floor * state.n_ctx) if spared else most):
                break
        return after


def without_old_steps(messages: Sequence[Message], left: int) -> list[Message]:
    """The head and the newest `left` steps (at least one)."""
    t = transcript(messages)
    memory = t.memory.message()
    steps = t.steps[-max(left, 1) :]
    return [*t.head, *([] if memory is None else [memory]), *(m for step in steps for m in step.messages)]
