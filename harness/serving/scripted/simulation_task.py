"""Tasks whose files have asked sizes, so that reading one yields a tool result of that many tokens of the double.

A shelf holds `copies` files for every size from `least` to `most` in steps of `step` tokens; a file's name says its size. The
simulated agent knows the shelf by the same rule, so it never has to list it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.serving.errors import ServingError
from harness.serving.scripted import filler
from harness.serving.scripted.tokenizer import count


@dataclass(frozen=True)
class Shelf:
    """Sizes in tokens of the double's tokenizer."""

    least: int = 100
    most: int = 2000
    step: int = 20
    copies: int = 3
    folder: str = "notes"

    @classmethod
    def read(cls, given: Any) -> Shelf:
        """Builds a shelf from YAML values; raises ValueError for what does not fit."""
        known = [f.name for f in dataclasses.fields(cls)]
        if not isinstance(given, dict) or not set(given) <= set(known):
            raise ValueError(f"shelf: takes {', '.join(known)}; got {given!r}")
        shelf = cls(**given)
        if not all(isinstance(n, int) and n >= 1 for n in (shelf.least, shelf.step, shelf.copies)):
            raise ValueError("shelf: least, step and copies are whole numbers of at least 1")
        if not isinstance(shelf.most, int) or shelf.most < shelf.least:
            raise ValueError(f"shelf: most is a whole number of at least {shelf.least}")
        return shelf

    def size(self, tokens: int) -> int:
        """The size on the shelf that is nearest to the wanted one."""
        last = (self.most - self.least) // self.step
        return self.least + self.step * min(max(round((tokens - self.least) / self.step), 0), last)

    def path(self, tokens: int, copy: int) -> str:
        """The relative path of a file of about that size."""
        return f"{self.folder}/{self.size(tokens):05d}-{copy}.txt"

    def files(self) -> Iterator[tuple[str, int]]:
        """Every file of the shelf with its size."""
        for tokens in range(self.least, self.most + 1, self.step):
            for copy in range(self.copies):
                yield self.path(tokens, copy), tokens


_FILES = {
    "task.toml": """\
schema_version = "1.4"

[task]
name = "calledshot/simulation"
description = "Files of asked sizes for the simulated agent."

[metadata.calledshot]
asks_for_tests = false

[verifier]
timeout_sec = 60
""",
    "environment/repo/test_notes.py": """\
from pathlib import Path


def test_the_notes_are_there():
    assert any(Path("{folder}").iterdir())
""",
    "tests/test_drafts_hidden.py": """\
from pathlib import Path


def test_a_draft_was_written():
    assert any(Path("drafts").glob("*.txt"))
""",
    "solution/files/drafts/001.txt": "One draft.\n",
}
_INSTRUCTION = "Read the notes you need and write your drafts into the folder drafts."


def make_simulation_task(
    dest: Path, shelf: Shelf | None = None, *, instruction_tokens: int = 264, seed: int | str = 0
) -> Path:
    """Makes a task folder at `dest` (new, or empty) and returns it; the same arguments make the same bytes.

    instruction_tokens: the exact size of the instruction. With the default, system prompt, tools and instruction of the
    published agents make a head of about 800 tokens, as in the project's clearing simulation.

    Raises:
        ServingError: dest is taken, or the instruction is asked to be shorter than its first sentence.
    """
    shelf = shelf or Shelf()
    if dest.exists() and any(dest.iterdir()):
        raise ServingError(f"{dest}: not empty; name a new folder for the simulation task")
    padding = instruction_tokens - count(_INSTRUCTION)
    if padding < 0:
        raise ServingError(f"instruction_tokens: needs at least {count(_INSTRUCTION)}, got {instruction_tokens}")
    _write(dest / "instruction.md", _INSTRUCTION + filler.more(padding))
    for name, text in _FILES.items():
        _write(dest / name, text.replace("{folder}", shelf.folder))
    for name, tokens in shelf.files():
        _write(dest / "environment" / "repo" / name, filler.prose(tokens, f"{seed}/{name}"))
    return dest


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
