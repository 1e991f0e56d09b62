"""What a claim's author is told: one line with the place, and the claim with a caret below that place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A stretch of the claim's text, in characters counted from 0; `end` is the first one after it."""

    start: int
    end: int


class ClaimError(ValueError):
    """A claim that can't be read or whose types do not fit.

    The message is one line that names the problem, the column (from 1) and what would fit; `caret` shows the place.
    """

    def __init__(self, problem: str, claim: str, span: Span) -> None:
        self.problem = problem
        self.claim = claim
        self.span = span
        super().__init__(f"column {span.start + 1}: {problem}")

    def caret(self) -> str:
        """The claim on one line, and below it carets under the part that is wrong."""
        return f"{self.claim}\n{' ' * self.span.start}{'^' * max(1, self.span.end - self.span.start)}"
