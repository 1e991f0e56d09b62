"""The contract of context policies: small pure functions over the message list.

A policy is asked at three moments: after a reply, before a request is sent, and when the server refused a request as larger
than the window. It answers with the new list and why, or None. It never touches the system prompt or the task, never
reorders messages and never breaks the pairing of calls and results. Everything it may go by stands in `ContextState`, so
that a replay of a recorded run asks it exactly what a live run does; only `summarise` has an effect, a request of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from harness.record.conversation import Message

When = Literal["after_reply", "before_send", "overflow"]
Count = Callable[[Sequence[Message]], int | None]
Summarise = Callable[[list[Message], int], str | None]


@dataclass(frozen=True)
class ContextState:
    """What a policy may look at; sizes in tokens.

    total_tokens: prompt and reply of the last request, None when the server did not say or the list was changed since.
    appended: how many messages at the end of the list total_tokens does not cover.
    count: the size of a message list as it would be sent, by the served model's tokenizer and template; None, or an answer
    of None, where the server can't tell.
    since_clear: requests answered since messages were last cleared, None before the first time. thrashes: how many clears
    came within two requests of the one before.
    summarise: asks the same model, in at most so many tokens, about the list and an instruction at its end.
    """

    messages: Sequence[Message]
    n_ctx: int
    max_tokens: int | None
    total_tokens: int | None
    count: Count | None = None
    appended: int = 0
    since_clear: int | None = None
    thrashes: int = 0
    summarise: Summarise | None = None


@dataclass(frozen=True)
class ContextChange:
    """The list after a change. cleared: messages that differ from before, as the published code counts them."""

    messages: list[Message]
    cleared: int
    reason: str
    decision: dict[str, Any] = field(default_factory=dict)


class ContextPolicy(Protocol):
    @property
    def name(self) -> str: ...

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        """What to change now; None for nothing. A change with cleared = 0 is a clear that found nothing to clear."""
        ...
