"""Ids of replies and calls: in llama-server's form, but the same in every run of a scenario."""

from __future__ import annotations

import hashlib
import string

_LETTERS = string.ascii_letters + string.digits


def reply_id(reply: int) -> str:
    """The id of the run's reply number `reply`, counted from 0."""
    return f"chatcmpl-{_letters(f'reply {reply}')}"


def call_id(reply: int, call: int) -> str:
    """The id of a reply's call number `call`."""
    return _letters(f"reply {reply} call {call}")


def _letters(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)
