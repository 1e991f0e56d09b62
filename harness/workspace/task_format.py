"""Writes task folders: the one place that knows what stands in the files which Harbor needs beside our own."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.workspace.errors import TaskError

Files = Mapping[str, "Path | str"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Draft:
    """A task to be written. repo, tests, reference: by path, a text or the file to copy. timeout_s: of one run of the tests.

    The options are those of `harness.workspace.tasks.Task`; source says where an imported task comes from.
    """

    name: str
    description: str
    instruction: str
    repo: Files
    tests: Files
    reference: Files
    timeout_s: float = 60.0
    asks_for_tests: bool = False
    visible_tests: Sequence[str] | None = None
    only_tests: Sequence[str] = ()
    packages: Sequence[str] = ()
    keywords: Sequence[str] = ("python",)
    source: str | None = None
    extra: Files = field(default_factory=dict)


def write_task(draft: Draft, into: Path) -> Path:
    """Writes the folder `into`/name; returns it. A folder that was begun and can't be ended is taken away.

    Raises:
        TaskError: the name can't be a folder's, or is taken.
    """
    if not NAME.fullmatch(draft.name) or ".." in draft.name:
        raise TaskError(f"{draft.name!r}: not a task name; use letters, digits, '.', '_' and '-'")
    folder = into / draft.name
    if folder.exists():
        raise TaskError(f"{folder}: is there already; take it away or choose another name")
    try:
        _write(folder, {"task.toml": _toml(draft), "instruction.md": draft.instruction.strip() + "\n", **draft.extra})
        _write(folder / "environment", {"Dockerfile": _dockerfile(draft.packages)})
        _write(folder / "environment" / "repo", draft.repo)
        _write(folder / "tests", draft.tests | {"test.sh": _test_sh(draft)})
        if draft.reference:
            _write(folder / "solution" / "files", draft.reference)
            _write(folder / "solution", {"solve.sh": SOLVE_SH})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def scaffold(name: str) -> Draft:
    """A small whole task to start from: `calledshot tasks check` holds for it."""
    module = re.sub(r"\W", "_", name)
    return Draft(
        name=name,
        description="What this task is about, in one line.",
        instruction=f"The tests in test_{module}.py fail. Repair {module}.py so that they pass. Do not edit the tests.",
        repo={
            f"{module}.py": "def largest(values):\n    return values[0]\n",
            f"test_{module}.py": f"from {module} import largest\n\n\ndef test_largest():\n    assert largest([1, 3, 2]) == 3\n",
        },
        tests={
            f"test_{module}_hidden.py": (
                f"from {module} import largest\n\n\ndef test_largest_comes_last():\n    assert largest([1, 2, 9]) == 9\n"
                "\n\ndef test_largest_is_negative():\n    assert largest([-5, -2, -7]) == -2\n"
            )
        },
        reference={f"{module}.py": "def largest(values):\n    return max(values)\n"},
    )


SOLVE_SH = """#!/bin/bash
# Harbor runs this as /solution/solve.sh; Called Shot lays solution/files over the repo itself.
cp -r /solution/files/. /app/
"""

TEST_SH = """#!/bin/bash
# Harbor runs this as /tests/test.sh; Called Shot runs the hidden tests itself.
cp -r /tests/. /app/ && rm /app/test.sh && cd /app || exit 1
if python -m pytest -q -p no:cacheprovider -c /dev/null --rootdir /app TESTS; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""


def _test_sh(draft: Draft) -> str:
    names = " ".join(f"'{name}'" for name in draft.only_tests)
    found = "$(cd /tests && find . -name 'test_*.py' -o -name '*_test.py')"
    return TEST_SH.replace("TESTS", names or found)


def _dockerfile(packages: Sequence[str]) -> str:
    install = " ".join(["pytest", *packages])
    return f"FROM python:3.11-slim\nRUN pip install --no-cache-dir {install}\nCOPY repo/ /app/\nWORKDIR /app\n"


def _toml(draft: Draft) -> str:
    """TOML's basic strings and arrays of them are written as JSON writes them."""

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    options = {"asks_for_tests": draft.asks_for_tests}
    options |= {} if draft.visible_tests is None else {"visible_tests": list(draft.visible_tests)}
    options |= {"only_tests": list(draft.only_tests)} if draft.only_tests else {}
    options |= {"packages": list(draft.packages)} if draft.packages else {}
    lines = ['schema_version = "1.4"']
    lines += [f"source = {text(draft.source)}"] if draft.source else []
    lines += ["", "[task]", f"name = {text('calledshot/' + draft.name)}", f"description = {text(draft.description)}"]
    lines += [f"keywords = {text(list(draft.keywords))}", "", "[metadata.calledshot]"]
    lines += [f"{key} = {text(value)}" for key, value in options.items()]
    lines += [
        "",
        "[verifier]",
        f"timeout_sec = {draft.timeout_s:g}",
        "",
        "[environment]",
        'network_mode = "no-network"',
    ]
    return "\n".join(lines) + "\n"


def _write(folder: Path, files: Files) -> None:
    for name, what in files.items():
        place = folder / name
        if not place.resolve().is_relative_to(folder.resolve()):
            raise TaskError(f"{name}: leads out of the task's folder")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Path):
            shutil.copy(what, place)
        else:
            place.write_text(what, encoding="utf-8")
        if place.suffix == ".sh":
            place.chmod(0o755)
