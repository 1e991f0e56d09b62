"""The message list of one run; every change to it is an event, so that the record can rebuild every request."""

from __future__ import annotations

from typing import Any

from harness.record.conversation import Message, encode_change
from harness.record.events import EventSink


class Conversation:
    def __init__(self, sink: EventSink) -> None:
        self.messages: list[Message] = []
        self._sink = sink

    def append(self, message: Message) -> None:
        self._sink.emit("message", index=len(self.messages), message=message)
        self.messages.append(message)

    def system(self, text: str) -> None:
        self.append({"role": "system", "content": text})

    def user(self, text: str) -> None:
        self.append({"role": "user", "content": text})

    def tool(self, call_id: str, text: str) -> None:
        self.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def replace(self, messages: list[Message], **facts: Any) -> None:
        """The list becomes `messages`; `facts` are the other fields of the context event."""
        self._sink.emit("context", after=encode_change(self.messages, messages), **facts)
        self.messages = messages
