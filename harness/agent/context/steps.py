"""A conversation as its head (system prompt and task), its memory of dropped steps, and its steps.

A step is an assistant message with everything up to the next one: its results, and what the harness said to it. A call and
its result are always in the same step, so dropping whole steps keeps every pair whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.agent.context.memory import Memory
from harness.agent.notices import is_cut_notice
from harness.record.conversation import Message


@dataclass(frozen=True)
class Step:
    messages: tuple[Message, ...]

    @property
    def reply(self) -> Message | None:
        """The assistant message; None for what stands before the first one."""
        first = self.messages[0]
        return first if first["role"] == "assistant" else None

    def results(self) -> list[int]:
        """Places in the step of what the reply got back: tool results and what the harness answered, cut notices not."""
        return [i for i, m in enumerate(self.messages) if is_result(m)]


@dataclass(frozen=True)
class Transcript:
    head: tuple[Message, ...]
    memory: Memory
    steps: tuple[Step, ...]

    def messages(self) -> list[Message]:
        memory = self.memory.message()
        after = [m for step in self.steps for m in step.messages]
        return [*self.head, *([] if memory is None else [memory]), *after]


def is_result(message: Message) -> bool:
    return message["role"] == "tool" or (message["role"] == "user" and not is_cut_notice(message))


def transcript(messages: Sequence[Message]) -> Transcript:
    """The parts of a list; `.messages()` gives the list back."""
    task = next((i for i, m in enumerate(messages) if m["role"] == "user"), len(messages) - 1)
    rest = list(messages[task + 1 :])
    memory = Memory.read(rest[0]) if rest else None
    if memory is not None:
        rest = rest[1:]
    return Transcript(tuple(messages[: task + 1]), memory or Memory(), tuple(_steps(rest)))


def without_old_notices(messages: Sequence[Message]) -> list[Message]:
    """The list with the newest cut-reply notice only."""
    notices = [i for i, m in enumerate(messages) if is_cut_notice(m)]
    old = set(notices[:-1])
    return [m for i, m in enumerate(messages) if i not in old]


def _steps(messages: Iterable[Message]) -> Iterable[Step]:
    step: list[Message] = []
    for message in messages:
        if message["role"] == "assistant" and step:
            yield Step(tuple(step))
            step = []
        step.append(message)
    if step:
        yield Step(tuple(step))
