"""When a run's context was cleared, as far as policies need it: requests since, and how often it came too soon."""

from __future__ import annotations

THRASH_REQUESTS = 2


class ClearHistory:
    """since_clear and thrashes as `ContextState` describes them."""

    def __init__(self) -> None:
        self.since_clear: int | None = None
        self.thrashes = 0

    def answered(self) -> None:
        """A request reached the slot."""
        if self.since_clear is not None:
            self.since_clear += 1

    def cleared(self) -> None:
        """At least one message was cleared. A second change before any request is part of the same clear."""
        self.thrashes += self.since_clear is not None and 0 < self.since_clear <= THRASH_REQUESTS
        self.since_clear = 0


def is_thrash(since_clear: int | None) -> bool:
    """Whether a clear now comes within two requests of the one before."""
    return since_clear is not None and 0 < since_clear <= THRASH_REQUESTS
