"""A run's transcript as plain blocks: what was said, done, cut, cleared and checked, in order.

A block is {kind, title, text, marks}: kind for the look (system, user, assistant, tool, event), marks in words, such as
`cleared before step 7` or `cut by the window, dropped`. Pure: events in, blocks out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.record.slot import Event, Message

TITLES = {"system": "system prompt", "user": "user", "assistant": "model", "tool": "tool result"}
CUT_WORDS = {
    "window": "cut by the window",
    "limit": "cut by the reply limit",
    "unparsed": "not readable for the server",
}


@dataclass
class Block:
    kind: str
    title: str
    text: str
    marks: list[str] = field(default_factory=list)

    def as_list(self, longest: int | None = None) -> list[Any]:
        """[kind, title, text, marks] for the page; text longer than `longest` characters is shortened, and says so."""
        text = self.text
        if longest is not None and len(text) > longest:
            text = f"{text[:longest]}\n… {len(text) - longest} more characters are in events.jsonl"
        return [self.kind, self.title, text, self.marks]


def transcript(events: Iterable[Event]) -> list[Block]:
    """The blocks of one run."""
    writer = _Writer()
    for event in events:
        handler = getattr(writer, f"on_{event['event']}", None)
        if handler is not None:
            handler(event)
    return [*writer.blocks, *writer.late]


class _Writer:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.shown: list[Block | None] = []  # the block of every message of the conversation as it is now
        self.late: list[Block] = []  # what happened between a reply and the message made of it: it is shown behind it
        self.replied = False
        self.cut: Event | None = None
        self.numbers = ""

    def on_message(self, event: Event) -> None:
        message = event["message"]
        role = message.get("role", "user")
        block = Block(role, self._title(event, role), text_of(message))
        if role == "assistant" and self.cut is not None:
            block.marks.append(f"{CUT_WORDS.get(str(self.cut.get('kind')), 'cut')}, taken as it came")
            self.cut = None
        if role == "assistant" and self.numbers:
            block.marks.append(self.numbers)
            self.numbers = ""
        self.blocks.append(block)
        self.shown.append(block)
        if role == "assistant":
            self.blocks += self.late
            self.late, self.replied = [], False

    def on_response(self, event: Event) -> None:
        outcome = event.get("outcome")
        self.numbers = _numbers(event)
        self.replied = outcome == "reply" or (outcome == "cut" and not event.get("dropped"))
        if outcome == "overflow":
            self._event(event, "refused as larger than the window", str(event.get("error") or ""), ["overflow"])
        elif outcome == "server_error":
            self._event(
                event,
                f"server error {event.get('status') or event.get('kind')}",
                str(event.get("error") or ""),
                ["error"],
            )
        elif outcome == "cut":
            words = CUT_WORDS.get(str(event.get("kind")), "cut")
            if event.get("dropped"):
                marks = [f"{words}, dropped", self.numbers]
                self.blocks.append(
                    Block("assistant", f"step {event.get('step')}: model", _partial(event), [m for m in marks if m])
                )
                self.numbers = ""
            else:
                self.cut = event

    def on_context(self, event: Event) -> None:
        kept = {item for item in event["after"] if isinstance(item, int)}
        for number, block in enumerate(self.shown):
            if number not in kept and block is not None:
                block.marks.append(f"cleared or changed at step {event.get('step')}")
        self.shown = [self.shown[item] if isinstance(item, int) else None for item in event["after"]]
        changed = event.get("cleared")
        if changed == 0:
            what, mark = "clear that found nothing to clear", "nothing cleared"
        else:
            what, mark = f"clear: {changed} message{'' if changed == 1 else 's'} changed", "clear"
        place = self.late if self.replied and event.get("when") == "after_reply" else self.blocks
        title = self._title(event, f"{what} ({event.get('policy')})")
        place.append(Block("event", title, str(event.get("reason") or ""), [mark]))

    def on_approval(self, event: Event) -> None:
        if event.get("verdict") == "asks":
            advice = event.get("advice") or {}
            lines = [str(event.get("command")), str(event.get("reason") or ""), str(advice.get("line") or "")]
            self._event(event, f"asked; answer {event.get('answer')}", "\n".join(x for x in lines if x), [])

    def on_guard(self, event: Event) -> None:
        self._event(event, "the test guard put tests back", str(event.get("note") or ""), ["guard"])

    def on_finish_check(self, event: Event) -> None:
        verdict = "passed" if event.get("passed") else "not passed"
        self._event(
            event,
            f"finish check ({event.get('gate')}): {verdict}",
            str(event.get("output") or event.get("last_line") or ""),
            [],
        )

    def on_note(self, event: Event) -> None:
        self._event(event, f"note: {event.get('kind')}", str(event.get("text") or ""), [])

    def on_stop(self, event: Event) -> None:
        self._event(event, f"stop: {event.get('reason')}", str(event.get("text") or ""), [])

    def _event(self, event: Event, title: str, text: str, marks: list[str]) -> None:
        self.blocks.append(Block("event", self._title(event, title), text, marks))

    def _title(self, event: Event, what: str) -> str:
        words = TITLES.get(what, what)
        return words if event.get("step") is None else f"step {event['step']}: {words}"


def text_of(message: Message) -> str:
    """What a message says, thinking and calls included."""
    parts = []
    if message.get("reasoning_content"):
        parts.append(f"(thinking) {message['reasoning_content']}")
    if message.get("content"):
        parts.append(str(message["content"]))
    for call in message.get("tool_calls") or ():
        parts.append(f"→ {call['function']['name']} {call['function']['arguments']}")
    return "\n".join(parts) or "(empty)"


def _partial(event: Event) -> str:
    message = event.get("message") or {}
    parts = [f"(thinking) {message['reasoning']}"] if message.get("reasoning") else []
    parts += [str(message["content"])] if message.get("content") else []
    parts += [f"→ {c.get('name')} {c.get('arguments')}" for c in message.get("tool_calls") or ()]
    return "\n".join(parts) or str(event.get("error") or "(nothing arrived)")


def _numbers(event: Event) -> str:
    timings = event.get("timings") or {}
    if timings.get("prompt_n") is None:
        return ""
    return f"{timings.get('cache_n', '?')} reused, {timings['prompt_n']} evaluated, {timings.get('predicted_n', '?')} written"
