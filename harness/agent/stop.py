"""How a run of the loop can end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StopReason(StrEnum):
    """Every end of the loop is one of these."""

    DECLARED_DONE = "declared_done"  # the model said so and the finish gate believed it
    STEP_LIMIT = "step_limit"
    CONTEXT_EXHAUSTED = "context_exhausted"  # a request larger than the window and nothing (more) to clear
    SERVER_ERROR = "server_error"
    REPLY_UNUSABLE = "reply_unusable"  # too many replies in a row that could not be read
    TIME_LIMIT = "time_limit"
    ESCALATED = "escalated"  # planning: an item reached its retry limit and the model handed it to the user
    AGENT_FAILED = "agent_failed"  # external: it ended by itself, and not well, or a limit of the sandbox ended it
    INTERRUPTED = "interrupted"  # Ctrl-C; the run is not counted and starts afresh


@dataclass(frozen=True)
class Stop:
    """The end of one run. steps: requests the loop used. text: what the published agent would print."""

    reason: StopReason
    steps: int
    text: str
    detail: str | None = None
    status: int | None = None

    @property
    def declared_done(self) -> bool:
        return self.reason is StopReason.DECLARED_DONE
