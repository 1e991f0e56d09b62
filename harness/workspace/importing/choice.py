"""What the readers of other collections share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# A task found in a collection: its name, and what writes it into a folder and returns the new task folder.
Found = tuple[str, Callable[[Path], Path]]


@dataclass(frozen=True)
class Choice:
    """What of a collection is taken. only: names, all when empty. hide_tests: leave the tests out of the repo."""

    only: tuple[str, ...] = ()
    hide_tests: bool = False

    def takes(self, name: str) -> bool:
        return not self.only or name in self.only
