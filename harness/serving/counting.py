"""Exact sizes of message lists as a server would see them, while a run goes on; the slot is not touched.

The server's own template renders the list (`/apply-template`) and its tokenizer counts it (`/tokenize`), each piece of text
once. A server without these endpoints gives None, and the context policies fall back to estimates and say so.
"""

from __future__ import annotations

from typing import Any

from harness.record.conversation import Message
from harness.serving.client import ChatClient
from harness.serving.pieces import PieceTokens


class TokenCounter:
    """Counts for one server; called with a list as it is sent and the tools that go with it, gives tokens or None."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client
        self._pieces = PieceTokens(self._tokenize, {})
        self._last: tuple[str, int] | None = None

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]] | None) -> int | None:
        text = self._client.apply_template(messages, tools)
        if text is None:
            return None
        if self._last is None or self._last[0] != text:
            tokens = self._pieces.tokens(text)
            if tokens is None:
                return None
            self._last = text, len(tokens)
        return self._last[1]

    def _tokenize(self, text: str, add_special: bool) -> list[int] | None:
        return self._client.tokenize(text, add_special=add_special)
