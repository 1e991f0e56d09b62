"""Programs of QuixBugs, each with one wrong line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.workspace.importing.choice import Choice, Found
from harness.workspace.task_format import Draft, write_task


def quixbugs(source: Path, choice: Choice, temp: Path) -> Iterator[Found]:
    """A clone of QuixBugs: python_programs/, correct_python_programs/, python_testcases/, json_testcases/.

    Its tests read two settings from pytest that its conftest.py makes out of command-line options; the task gets a conftest.py
    that sets them.
    """
    for test in sorted((source / "python_testcases").glob("test_*.py")):
        name = test.stem.removeprefix("test_")
        yield name, lambda into, n=name: write_task(_program(source, n, choice), into)


CONFTEST = """import pytest


def pytest_configure(config):
    pytest.use_correct = False
    pytest.run_slow = False
"""


def _program(source: Path, name: str, choice: Choice) -> Draft:
    program = source / "python_programs" / f"{name}.py"
    test = source / "python_testcases" / f"test_{name}.py"
    text = program.read_text(encoding="utf-8")
    tests: dict[str, Path | str] = {f"python_testcases/test_{name}.py": test, "conftest.py": CONFTEST}
    for helper in ("load_testdata.py", "node.py"):
        if helper.removesuffix(".py") in test.read_text(encoding="utf-8"):
            tests[f"python_testcases/{helper}"] = source / "python_testcases" / helper
    data = source / "json_testcases" / f"{name}.json"
    if data.is_file():
        tests[f"json_testcases/{name}.json"] = data
    repo: dict[str, Path | str] = {f"python_programs/{name}.py": program}
    if "node" in text.lower() and (source / "python_programs" / "node.py").is_file():
        repo["python_programs/node.py"] = source / "python_programs" / "node.py"
    seen = "" if choice.hide_tests else f" The tests are in python_testcases/test_{name}.py; do not edit them."
    return Draft(
        name=name,
        description=f"QuixBugs: {name}",
        instruction=f"One line of python_programs/{name}.py is wrong. Find it and repair it.{seen}",
        repo=repo if choice.hide_tests else repo | tests,
        tests=tests,
        reference={f"python_programs/{name}.py": source / "correct_python_programs" / f"{name}.py"},
        keywords=("python", "repair", "quixbugs"),
        timeout_s=60,
        source="https://github.com/jkoppel/QuixBugs",
    )
