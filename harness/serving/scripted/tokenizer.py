"""The double's tokenizer: deterministic, exact, and stable at message boundaries.

A text is cut at the special tokens first, then each part by one regular expression: a newline; up to nine letters of a word,
or a blank and up to eight; up to three digits or four signs, a blank before them included; up to nine blanks; any other
character alone. English prose comes to about 4.5 characters a token, Python to 3.5. Joining all pieces gives the text back.

A token's id says what its piece is (its characters as digits of one number), so ids need no table, are the same in every
process, and `detokenize` is exact. No piece goes past a special token or a newline: a text that ends in one of them keeps its
tokens whatever is appended, which is what makes a growing conversation keep its prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

IM_START, IM_END = "<|im_start|>", "<|im_end|>"
SPECIALS = (
    IM_START,
    IM_END,
    "<|endoftext|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<tools>",
    "</tools>",
)
EOS = SPECIALS.index(IM_END)
# Ids: special tokens, then single characters by code point, then pieces of printable ASCII as numbers in base 96.
_CHARACTERS, _PRINTABLE, _BASE = 16, 16 + 0x110000, 96
_LONGEST = 9
VOCABULARY = _PRINTABLE + _BASE**_LONGEST

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIALS)) + ")")
_SIGN = r"[!-/:-@\[-`{-~]"
_PIECE = re.compile(
    rf"\n| [A-Za-z]{{1,8}}|[A-Za-z]{{1,9}}| ?[0-9]{{1,3}}| ?{_SIGN}{{1,4}}| {{1,9}}|[^ -~\n]",
)
_SPECIAL_ID = {text: number for number, text in enumerate(SPECIALS)}


def pieces(text: str) -> list[str]:
    """The text cut into the pieces that are one token each."""
    found: list[str] = []
    for part in _SPECIAL.split(text):
        if part in _SPECIAL_ID:
            found.append(part)
        elif part:
            found.extend(_PIECE.findall(part))
    return found


def tokenize(text: str) -> list[int]:
    """The text's token ids."""
    return [_id(piece) for piece in pieces(text)]


def count(text: str) -> int:
    """How many tokens the text has."""
    return len(pieces(text))


def detokenize(tokens: Iterable[int]) -> str:
    """The text of some tokens; raises ValueError for a number that is no token of this tokenizer."""
    return "".join(map(_piece, tokens))


@lru_cache(maxsize=65536)
def _id(piece: str) -> int:
    special = _SPECIAL_ID.get(piece)
    if special is not None:
        return special
    if len(piece) == 1:
        return _CHARACTERS + ord(piece)
    number = 0
    for char in piece:
        number = number * _BASE + ord(char) - 31
    return _PRINTABLE + number


@lru_cache(maxsize=65536)
def _piece(token: int) -> str:
    if 0 <= token < len(SPECIALS):
        return SPECIALS[token]
    if _CHARACTERS <= token < _PRINTABLE:
        return chr(token - _CHARACTERS)
    chars: list[str] = []
    number = token - _PRINTABLE
    while number > 0:
        number, digit = divmod(number, _BASE)
        chars.append(chr(digit + 31))
    text = "".join(reversed(chars))
    if not 1 < len(text) <= _LONGEST or not text.isprintable():
        raise ValueError(f"{token} is no token of this tokenizer")
    return text
