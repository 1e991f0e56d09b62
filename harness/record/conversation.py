"""Rebuilds, from events alone, the message list that each request was sent with.

`message` events append; a `context` event replaces the list: its `after` holds, for every message of the new list, either
the number of the unchanged message of the old one or the new message itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Message = dict[str, Any]


def encode_change(before: list[Message], after: list[Message]) -> list[int | Message]:
    """The `after` field of a context event: numbers for messages that stayed as they were, whole messages for others."""
    encoded: list[int | Message] = []
    start = 0
    for message in after:
        found = next((i for i in range(start, len(before)) if before[i] == message), None)
        if found is None:
            encoded.append(message)
        else:
            encoded.append(found)
            start = found + 1
    return encoded


def decode_change(before: list[Message], encoded: list[int | Message]) -> list[Message]:
    """The inverse of encode_change."""
    return [before[item] if isinstance(item, int) else item for item in encoded]


def conversations(events: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[Message]]]:
    """Yields (request event, messages at that moment) for every request; the list is a copy the caller may keep."""
    messages: list[Message] = []
    for event in events:
        if event["event"] == "message":
            messages.append(event["message"])
        elif event["event"] == "context":
            messages = decode_change(messages, event["after"])
        elif event["event"] == "request":
            yield event, list(messages)
