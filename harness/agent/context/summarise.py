"""summarise: the same model puts the old steps into words; the summary takes their place.

The question is the conversation itself with an instruction at its end, so the cache fits it. Where there is no room left for
the question, too little to gain, or no usable answer, it clears as guarded does, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness.agent.context.base import ContextChange, ContextState, When
from harness.agent.context.clearing import changed, clear
from harness.agent.context.guarded import Guarded
from harness.agent.context.memory import LEDGER_TITLE, Memory
from harness.agent.context.size import Sizer
from harness.agent.context.steps import transcript
from harness.agent.context.trigger import limit
from harness.record.conversation import Message

INSTRUCTION = (
    "Your context is nearly full. In at most {words} words, write down what you need to go on without the steps above: what "
    "you found, which files you changed and how, what the last test run said, what is left to do. Call no tool."
)
WORDS_PER_TOKEN = 0.6
LEAST_GAIN = 200  # tokens that a summary must be worth


@dataclass(frozen=True)
class Summarise:
    """summary_tokens: the limit of the summary's reply. fallback: how it clears where there is no summary, at the same trigger."""

    trigger: float | None = None
    summary_tokens: int = 400
    fallback: Guarded = field(default_factory=Guarded)
    keep: int = 2
    name: str = "summarise"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        if when == "after_reply":
            return None
        if when == "overflow":
            return self.fallback.decide(when, state)
        sizer = Sizer(state)
        size, most = sizer.tokens(state.messages), limit(self.trigger, state)
        if size <= most:
            return None
        reason = f"{size} tokens are over the limit of {most}"
        decision = {"size": size, "size_is": sizer.how, "limit": most}
        asked = [*state.messages, instruction(self.summary_tokens)]
        shorter = self._with(Memory(summary="…"), state)
        if state.summarise is None:
            return self._fall_back(state, "there is no way to ask for a summary")
        if sizer.tokens(shorter) + self.summary_tokens > min(most, size - LEAST_GAIN):
            return self._fall_back(
                state, "what stays and a summary would not fit under the limit, or hardly be shorter"
            )
        if sizer.tokens(asked) + self.summary_tokens > state.n_ctx:
            return self._fall_back(state, "there was no room left to ask for a summary")
        text = state.summarise(asked, self.summary_tokens)
        if text is None or not text.strip():
            return self._fall_back(state, "the model gave no usable summary")
        after = self._with(Memory(summary=text.replace(LEDGER_TITLE, "").strip()), state)
        decision["after"] = sizer.tokens(after)
        cleared = changed(state.messages, after)
        return ContextChange(
            after, cleared, f"{reason}; the model's summary took the place of {cleared} messages", decision
        )

    def _with(self, memory: Memory, state: ContextState) -> list[Message]:
        """The kept steps, cleared as the fallback would, behind another memory."""
        how = replace(self.fallback.clearing, keep=self.keep, ledger=True)
        t = transcript(clear(state.messages, how, state.n_ctx))
        return replace(t, memory=memory).messages()

    def _fall_back(self, state: ContextState, why: str) -> ContextChange | None:
        change = replace(self.fallback, trigger=self.trigger).decide("before_send", state)
        if change is None:
            return None
        return replace(
            change, reason=f"{change.reason}; cleared because {why}", decision=change.decision | {"no_summary": why}
        )


def instruction(summary_tokens: int) -> Message:
    return {"role": "user", "content": INSTRUCTION.format(words=int(summary_tokens * WORDS_PER_TOKEN))}
