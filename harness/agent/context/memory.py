"""What stays of dropped steps: one user message behind the task, with a summary, a ledger of one line per call, or both.

The message is read back from its own text, so that a conversation needs no state beside itself. New lines are appended at
its end: everything before them keeps its place in the prompt cache. A ledger that outgrows its room is shortened to half of
it at once, oldest lines first, so that this, which costs the cache its whole tail, stays rare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.agent.tools.base import parse_arguments
from harness.record.conversation import Message

SUMMARY_TITLE = "[summary of the earlier steps, which were taken out to save context]"
LEDGER_TITLE = "[earlier steps, taken out to save context; call a tool again if you need its result]"
ARGUMENT_CHARS, GIST_CHARS = 48, 60
# A tenth of the window, at about four characters a token.
LEDGER_CHARS_PER_TOKEN_OF_WINDOW = 0.4
_DROPPED = re.compile(r"- \((\d+) more before these\)")
_BODIES = ("content", "old", "new")


@dataclass(frozen=True)
class Memory:
    """summary: the model's own words about dropped steps. lines: the ledger. dropped: lines that found no room."""

    summary: str | None = None
    lines: tuple[str, ...] = ()
    dropped: int = 0

    @classmethod
    def read(cls, message: Message) -> Memory | None:
        """The memory a message holds; None for any other message."""
        text = message.get("content") or ""
        if message["role"] != "user" or not text.startswith((SUMMARY_TITLE, LEDGER_TITLE)):
            return None
        before, title, ledger = text.rpartition(LEDGER_TITLE)
        if not title:
            before, ledger = text, ""
        summary = before.removeprefix(SUMMARY_TITLE).strip() or None
        lines = [line for line in ledger.split("\n") if line.startswith("- ")]
        found = _DROPPED.fullmatch(lines[0]) if lines else None
        return cls(summary, tuple(lines[1:] if found else lines), int(found[1]) if found else 0)

    def message(self) -> Message | None:
        """The message; None when there is nothing to remember."""
        parts = [] if self.summary is None else [f"{SUMMARY_TITLE}\n{self.summary}"]
        if self.lines or self.dropped:
            first = [f"- ({self.dropped} more before these)"] if self.dropped else []
            parts.append("\n".join([LEDGER_TITLE, *first, *self.lines]))
        return {"role": "user", "content": "\n".join(parts)} if parts else None

    def with_lines(self, lines: list[str], n_ctx: int) -> Memory:
        """The memory with new lines at its end, shortened when it outgrew its room."""
        room = LEDGER_CHARS_PER_TOKEN_OF_WINDOW * n_ctx
        every = [*self.lines, *lines]
        if sum(map(len, every)) <= room:
            return replace(self, lines=tuple(every))
        kept: list[str] = []
        size = 0
        for line in reversed(every):
            size += len(line)
            if size > room / 2:
                break
            kept.append(line)
        return replace(self, lines=tuple(reversed(kept)), dropped=self.dropped + len(every) - len(kept))


def ledger_lines(messages: tuple[Message, ...]) -> Iterator[str]:
    """One line per call of a step, and one for a reply without calls; the same step always gives the same lines."""
    reply = messages[0] if messages[0]["role"] == "assistant" else None
    calls = (reply or {}).get("tool_calls") or ()
    results = {m["tool_call_id"]: m.get("content") or "" for m in messages if m["role"] == "tool"}
    for call in calls:
        function = call["function"]
        what = f"{function['name']} {_argument(function['arguments'])}".strip()
        yield f"- {what} -> {_gist(results.get(call['id'], 'no result'))}"
    said = [m.get("content") or "" for m in messages if m["role"] == "user"]
    if reply is not None and not calls:
        yield f"- a reply without a call -> {_gist(said[0]) if said else 'no answer'}"


def _argument(raw: str) -> str:
    """The argument that says most: the first one that is no body."""
    value = next((v for k, v in (parse_arguments(raw) or {}).items() if k not in _BODIES), "")
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), ARGUMENT_CHARS)


def _gist(text: str) -> str:
    """A short result as it is; of a longer one its size and, where it is short, its last line (a test run's verdict)."""
    lines = [line for line in text.strip().split("\n") if line.strip()]
    if len(lines) <= 1 and len(text) <= GIST_CHARS:
        return _short(text, GIST_CHARS) or "nothing"
    size = f"{len(text)} characters"
    last = _short(lines[-1], GIST_CHARS) if len(lines) > 1 and len(lines[-1]) <= GIST_CHARS else ""
    return f"{size}, last: {last}" if last else size


def _short(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
