"""Exact token ids of prompts, piece by piece: what was tokenised once is never tokenised again.

A prompt is cut in front of each special token (`<|im_start|>` and its like). A tokenizer looks for those first and reads what
lies between them apart, so the pieces' tokens laid end to end are the whole's. A marker counts only when it is one token;
the first prompts are tokenised whole as well, and where that ever differs no prompt is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

# The tokens of a text, special tokens in it read as such; add_special: with what the tokenizer puts before a prompt.
Tokenize = Callable[[str, bool], list[int] | None]

_MARKER = re.compile(r"<\|[^\s<>|]{1,32}\|>")
CHECKS = 2


@dataclass
class PieceTokens:
    """tokenize: the tokenizer itself, None as answer where it can't be had. known: the pieces seen so far, also those of
    earlier processes when it is kept somewhere; a piece at the front of a prompt has a key of its own."""

    tokenize: Tokenize
    known: MutableMapping[str, tuple[int, ...]]
    cuts: bool = True
    checked: int = 0

    def tokens(self, text: str) -> list[int] | None:
        """The prompt's token ids; None where the tokenizer gave no answer."""
        ids = self._by_pieces(text) if self.cuts else self._whole(text)
        if ids is None or not self.cuts or self.checked >= CHECKS:
            return ids
        self.checked += 1
        whole = self.tokenize(text, True)
        if whole is None or whole == ids:
            return ids
        self.cuts = False
        return whole

    def body(self, text: str) -> list[int] | None:
        """The tokens of a text inside a prompt, behind a special token or a line break."""
        found = self._piece(text, False)
        return None if found is None else list(found)

    def _by_pieces(self, text: str) -> list[int] | None:
        ids: list[int] = []
        start = 0
        for end in [*self._cuts(text), len(text)]:
            piece = self._piece(text[start:end], start == 0)
            if piece is None:
                return None
            ids += piece
            start = end
        return ids

    def _cuts(self, text: str) -> list[int]:
        return [m.start() for m in _MARKER.finditer(text) if m.start() and self._is_special(m[0])]

    def _is_special(self, marker: str) -> bool:
        found = self._piece(marker, False)
        return found is not None and len(found) == 1

    def _whole(self, text: str) -> list[int] | None:
        found = self._piece(text, True)
        return None if found is None else list(found)

    def _piece(self, text: str, first: bool) -> tuple[int, ...] | None:
        key = f"^{text}" if first else f"+{text}"
        found = self.known.get(key)
        if found is None:
            answer = self.tokenize(text, first)
            if answer is None:
                return None
            found = self.known[key] = tuple(answer)
        return found
