"""Brace expansion, the way bash does it: on the text, before variables and patterns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.values import Value

MAX_WORDS = 200


@dataclass(frozen=True)
class Item:
    """A character, or the value of an expansion; `quoted` keeps it from meaning anything."""

    char: str
    quoted: bool
    value: Value | None = None


def braces(items: list[Item]) -> Iterator[list[Item]]:
    """The words `items` stands for."""
    for start, item in enumerate(items):
        if item.quoted or item.char != "{":
            continue
        if start and items[start - 1].char == "$":
            raise AsksError("braces after a dollar sign")
        depth, commas = 0, [start]
        for index in range(start, len(items)):
            char = "" if items[index].quoted else items[index].char
            depth += (char == "{") - (char == "}")
            if char == "," and depth == 1:
                commas.append(index)
            if depth == 0:
                break
        else:
            if len(commas) > 1:
                raise AsksError("unbalanced braces")
            continue
        parts = [items[a + 1 : b] for a, b in zip(commas, [*commas[1:], index], strict=True)]
        if len(parts) == 1:
            body = "".join(i.char for i in parts[0])
            if ".." not in body:
                continue
            parts = [[Item(c, True) for c in one] for one in _sequence(body)]
        if len(parts) > MAX_WORDS:
            raise AsksError("too many words from braces")
        if any(other.value for other in items):
            # Braces come first and are text: $v{a,b} is $va $vb.
            raise AsksError("a variable beside braces")
        for part in parts:
            yield from braces([*items[:start], *part, *items[index + 1 :]])
        return
    yield items


def _sequence(body: str) -> list[str]:
    numbers = re.fullmatch(r"(-?\d{1,4})\.\.(-?\d{1,4})", body)
    if numbers:
        low, high = int(numbers[1]), int(numbers[2])
        step = 1 if low <= high else -1
        return [str(n) for n in range(low, high + step, step)]
    letters = re.fullmatch(r"([a-z])\.\.([a-z])", body) or re.fullmatch(r"([A-Z])\.\.([A-Z])", body)
    if letters and letters[1] <= letters[2]:
        return [chr(n) for n in range(ord(letters[1]), ord(letters[2]) + 1)]
    raise AsksError("an unusual brace sequence")
