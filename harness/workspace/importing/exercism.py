"""Exercises of Exercism's Python track."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.workspace.errors import TaskError
from harness.workspace.importing.choice import Choice, Found
from harness.workspace.task_format import Draft, write_task


def exercism(source: Path, choice: Choice, temp: Path) -> Iterator[Found]:
    """A clone of exercism/python or one exercise of it.

    .meta/config.json lists solution, test and example files; the instruction is .docs/. Worked solutions
    (.approaches, .articles, .meta) never reach the repo.
    """
    single = (source / ".meta" / "config.json").is_file()
    folders = [source] if single else sorted((source / "exercises" / "practice").glob("*/.meta/config.json"))
    for found in folders:
        folder = found if single else found.parents[1]
        yield folder.name, lambda into, f=folder: write_task(_exercise(f, choice), into)


def _exercise(folder: Path, choice: Choice) -> Draft:
    try:
        files = json.loads((folder / ".meta" / "config.json").read_text(encoding="utf-8"))["files"]
    except ValueError as e:
        raise TaskError(f"{folder / '.meta' / 'config.json'}: not JSON ({e})") from None
    solutions, tests, examples = files["solution"], files["test"], files.get("example") or files["exemplar"]
    docs = [folder / ".docs" / f"{part}.md" for part in ("introduction", "instructions", "instructions.append")]
    texts = [doc.read_text(encoding="utf-8").strip() for doc in docs if doc.is_file()]
    ask = f"Write {' and '.join(solutions)} so that the tests pass."
    ask += "" if choice.hide_tests else f" The tests are in {' and '.join(tests)}; do not edit them."
    helpers = sorted(p.name for p in folder.glob("*.py") if p.name not in (*solutions, *tests))
    shown = [*solutions, *helpers, *([] if choice.hide_tests else tests)]
    return Draft(
        name=folder.name,
        description=f"Exercism: {folder.name}",
        instruction="\n\n".join([*texts, ask]),
        repo={name: _inside(folder, name) for name in shown},
        tests={name: _inside(folder, name) for name in (*tests, *helpers)},
        reference={solutions[0]: _inside(folder, examples[0])},
        keywords=("python", "exercism"),
        timeout_s=120,
        source="https://github.com/exercism/python",
    )


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise TaskError(f"{name} is listed in .meta/config.json but is no file of the exercise")
    return path
