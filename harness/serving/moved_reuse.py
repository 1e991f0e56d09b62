"""Does this server reuse cached tokens that moved (`--cache-reuse`)? Asked with two requests, because no flag can be believed:
several builds and models take the option and never shift, with a warning or without one."""

from __future__ import annotations

from harness.serving.outcome import ChatRequest, Cut, Reply
from harness.serving.running import RunningServer

WORDS = 160  # a moved part of a few hundred tokens, more than any sensible cache_reuse


def moved_reuse(server: RunningServer) -> bool | None:
    """True when the tail of a prompt was reused after text in front of it was taken out; None when the server can't tell.

    Sends two requests tagged `probe`, one token each, and empties the slot afterwards.
    """
    first, middle, last = _lines("a", 8), _lines("b", 8), _lines("c", WORDS)
    server.cold = False
    try:
        before = _reused(server, f"{first}{middle}{last}")
        after = _reused(server, f"{first}{last}")
    finally:
        server.erase()
    if before is None or after is None:
        return None
    # Without shifting at most what stands before the removed lines is reused: a small part of the prompt.
    reused, prompt = after
    return reused > prompt / 2


def _lines(start: str, words: int) -> str:
    return "".join(f"{start}{number} stands here\n" for number in range(words))


def _reused(server: RunningServer, text: str) -> tuple[int, int] | None:
    """(tokens reused, tokens of the prompt)."""
    messages = [{"role": "user", "content": text}]
    request = ChatRequest(messages, 0, 0.0, max_tokens=1, tag="probe", extra=server.request_extra)
    outcome = server.client().chat(request)
    if not isinstance(outcome, (Reply, Cut)) or outcome.timings is None:
        return None
    reused, evaluated = outcome.timings.cache_n, outcome.timings.prompt_n
    return None if reused is None or evaluated is None else (reused, reused + evaluated)
