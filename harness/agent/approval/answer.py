"""Who answers when a rule asks: nobody (always yes, always no) or the person at the terminal.

Contract: an answerer returns True only for a clear yes. Whatever else happens (another word, end of input), the command is
declined and the model is told `REFUSAL`.
"""

import sys
from collections.abc import Callable
from typing import Protocol, TextIO

from harness.agent.approval.advice import Advice
from harness.agent.approval.types import Verdict

REFUSAL = "the user declined to run this command"


class Answerer(Protocol):
    """Answers one question; `advice` is None when no decision model was asked."""

    def __call__(self, command: str, verdict: Verdict, advice: Advice | None) -> bool: ...


def auto_yes(command: str, verdict: Verdict, advice: Advice | None) -> bool:
    """Let every asked command run."""
    return True


def auto_no(command: str, verdict: Verdict, advice: Advice | None) -> bool:
    """Decline every asked command."""
    return False


class Terminal:
    """Shows advice, reason and command, then reads one line; only `y` (trimmed, any case) runs the command."""

    def __init__(self, source: TextIO | None = None, sink: TextIO | None = None) -> None:
        self._source = source
        self._sink = sink

    def __call__(self, command: str, verdict: Verdict, advice: Advice | None) -> bool:
        source, sink = self._source or sys.stdin, self._sink or sys.stderr
        if advice is not None:
            print(advice.line, file=sink)
        print(f"asks: {printable(verdict.reason)}", file=sink)
        print(f"{printable(command)} [y/N] ", end="", file=sink, flush=True)
        return source.readline().strip().lower() == "y"


def printable(text: str) -> str:
    """Return `text` with control and direction characters spelled out, so a command cannot repaint the question."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


_ANSWERERS: dict[str, Callable[[], Answerer]] = {
    "auto_yes": lambda: auto_yes,
    "auto_no": lambda: auto_no,
    "terminal": Terminal,
}
ANSWERERS = tuple(_ANSWERERS)


def answerer(name: str) -> Answerer:
    """Return the answerer called `name`; ValueError names the known ones."""
    if name not in _ANSWERERS:
        raise ValueError(f"no answerer named {name!r}; known: {', '.join(ANSWERERS)}")
    return _ANSWERERS[name]()
