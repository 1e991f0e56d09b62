"""The server's slot as a list of token ids: what a prompt finds there, to the token.

Like llama.cpp's: reuse is the longest common prefix of the prompt and what the slot holds, at most prompt - 1, because one
token is always evaluated; the last sampled token never enters the slot. With `cache_reuse` above 0, pieces of at least that
many tokens that moved towards the front are reused as well, as long as each continues the prompt where the last one ended.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

BLOCK = 512


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix of two lists."""
    shorter, at = min(len(a), len(b)), 0
    while at < shorter and a[at : at + BLOCK] == b[at : at + BLOCK]:
        at += BLOCK
    at = min(at, shorter)
    while at < shorter and a[at] == b[at]:
        at += 1
    return at


class Slot:
    def __init__(self, cache_reuse: int = 0) -> None:
        self.held: list[int] = []
        self._cache_reuse = cache_reuse

    def take(self, prompt: list[int]) -> int:
        """Reads a prompt; returns how many of its tokens were reused."""
        reused = common_prefix(prompt, self.held)
        if self._cache_reuse > 0:
            reused += self._moved(prompt, reused)
        self.held = list(prompt)
        return min(reused, len(prompt) - 1)

    def wrote(self, tokens: Sequence[int]) -> None:
        """The tokens of a reply that entered the slot: all but the last sampled one."""
        self.held += tokens

    def _moved(self, prompt: list[int], start: int) -> int:
        held, at = start, start
        least = self._cache_reuse
        cache = array("q", self.held).tobytes()
        while at + least <= len(prompt):
            found = _find(cache, array("q", prompt[at : at + least]).tobytes(), held)
            if found is None:
                break
            length = common_prefix(self.held[found:], prompt[at:])
            held, at = found + length, at + length
        return at - start


def _find(cache: bytes, piece: bytes, start: int) -> int | None:
    """The first place at or behind `start` where the tokens stand, None without one."""
    size = array("q").itemsize
    place = cache.find(piece, start * size)
    while place != -1 and place % size:
        place = cache.find(piece, place + 1)
    return None if place == -1 else place // size
