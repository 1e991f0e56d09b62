"""Turns tasks of other collections, in a folder or file of the user's, into task folders. Nothing is downloaded or run.

Each reader yields what it finds; what does not fit is left out with one line that says why. The collections' own layouts are
described in the readers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.workspace.errors import TaskError
from harness.workspace.importing.choice import Choice, Found
from harness.workspace.importing.exercism import exercism
from harness.workspace.importing.harbor import harbor
from harness.workspace.importing.quixbugs import quixbugs
from harness.workspace.importing.swebench import swebench

FORMATS = ("auto", "exercism", "quixbugs", "swebench", "harbor")
Reader = Callable[[Path, Choice, Path], Iterator[Found]]
READERS: dict[str, Reader] = {"exercism": exercism, "quixbugs": quixbugs, "swebench": swebench, "harbor": harbor}
EVERYTHING = Choice()


@dataclass(frozen=True)
class Imported:
    """written: the new task folders. skipped: one line for each task that was left out."""

    written: tuple[Path, ...]
    skipped: tuple[str, ...]


def import_tasks(source: Path, into: Path, layout: str = "auto", choice: Choice = EVERYTHING) -> Imported:
    """Writes every task that `choice` takes from `source` into the folder `into`.

    Raises:
        TaskError: no such source, a layout that can't be told, or nothing in it that can be taken.
    """
    if not source.exists():
        raise TaskError(f"{source}: no such file or folder")
    reader = READERS[layout if layout != "auto" else _layout_of(source)]
    written, skipped = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in reader(source.resolve(), choice, Path(folder)):
            if not choice.takes(name):
                continue
            try:
                written.append(make(into))
            except (TaskError, KeyError, OSError, UnicodeDecodeError) as e:
                what = f"{e.args[0]!r} is missing" if isinstance(e, KeyError) else e
                skipped.append(f"{name}: left out ({what})")
    if not written:
        raise TaskError(skipped[0] if skipped else f"{source}: nothing to import there{_asked(choice)}")
    return Imported(tuple(written), tuple(skipped))


def _layout_of(source: Path) -> str:
    if source.is_file() and source.suffix in (".jsonl", ".json"):
        return "swebench"
    if (source / "python_programs").is_dir():
        return "quixbugs"
    if (source / "exercises" / "practice").is_dir() or (source / ".meta" / "config.json").is_file():
        return "exercism"
    if (source / "task.toml").is_file() or any(source.glob("*/task.toml")):
        return "harbor"
    raise TaskError(f"{source}: no layout that is known here; name it with --format {'|'.join(FORMATS[1:])}")


def _asked(choice: Choice) -> str:
    return f" by the name {', '.join(choice.only)}" if choice.only else ""
