"""Text of an exact size, for replies and files whose size matters and whose meaning does not."""

from __future__ import annotations

import random

# Every word is one token of the double's tokenizer, with or without the blank before it.
_VOCABULARY = """
the a file list test item date title value line command parser output input result check state store load save name order
entry field note table number place change reader writer option moment reason record handle search answer before after
under over again first last every other small large early later still only never often
"""
_WORDS = tuple(_VOCABULARY.split())
_LINE = 14


def prose(tokens: int, seed: str) -> str:
    """Words in lines, exactly `tokens` tokens of the double's tokenizer; the same text for the same seed."""
    rng = random.Random(seed)
    parts: list[str] = []
    for number in range(tokens):
        column = number % _LINE
        parts.append("\n" if column == _LINE - 1 else rng.choice(_WORDS) if column == 0 else f" {rng.choice(_WORDS)}")
    return "".join(parts)


def characters(size: int, seed: str) -> str:
    """Words in lines, exactly `size` characters."""
    return prose(size, seed)[:size].ljust(size, ".")


def more(tokens: int) -> str:
    """A text that adds exactly `tokens` tokens to a text that does not end in a blank."""
    return " more" * tokens
