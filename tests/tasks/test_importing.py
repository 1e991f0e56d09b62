"""Each layout by a tiny example made by hand for these tests; what was imported is proved in the sandbox."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.settings import SandboxSettings
from harness.workspace import load_task
from harness.workspace.check import prove
from harness.workspace.errors import TaskError
from harness.workspace.importing import Choice, import_tasks
from harness.workspace.task_format import scaffold, write_task


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def one(imported) -> object:
    assert imported.skipped == ()
    (folder,) = imported.written
    task = load_task(folder)
    assert prove(task, SandboxSettings(), times=1).problems == ()
    return task


def repo_files(task) -> set[str]:
    return {str(p.relative_to(task.repo)) for p in task.repo.rglob("*") if p.is_file()}


@pytest.fixture
def exercism(tmp_path):
    config = {"files": {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": [".meta/example.py"]}}
    test = (
        "import unittest\nfrom two_fer import two_fer\n\n\nclass TwoFerTest(unittest.TestCase):\n"
        "    def test_none(self):\n        self.assertEqual(two_fer(), 'you')\n"
    )
    folder = "exercises/practice/two-fer"
    return write(
        tmp_path / "track",
        {
            "config.json": "{}",
            f"{folder}/two_fer.py": "def two_fer(name):\n    pass\n",
            f"{folder}/two_fer_test.py": test,
            f"{folder}/.meta/config.json": json.dumps(config),
            f"{folder}/.meta/example.py": "def two_fer(name='you'):\n    return name\n",
            f"{folder}/.docs/instructions.md": "# Instructions\nSay who.\n",
            f"{folder}/.docs/introduction.md": "# Introduction\n",
            f"{folder}/.approaches/worked.md": "the solution",
            "exercises/practice/broken/.meta/config.json": json.dumps(
                {"files": {"solution": ["b.py"], "test": ["../../x_test.py"], "example": [".meta/example.py"]}}
            ),
        },
    )


def test_exercism(exercism, tmp_path):
    imported = import_tasks(exercism, tmp_path / "tasks", choice=Choice(only=("two-fer",)))
    task = one(imported)
    assert repo_files(task) == {"two_fer.py", "two_fer_test.py"}
    assert task.instruction.startswith("# Introduction\n\n# Instructions\nSay who.\n\nWrite two_fer.py")
    assert task.visible_names == ("two_fer_test.py::TwoFerTest::test_none",)


def test_exercism_with_its_tests_hidden(exercism, tmp_path):
    imported = import_tasks(exercism / "exercises/practice/two-fer", tmp_path / "tasks", choice=Choice(hide_tests=True))
    task = one(imported)
    assert repo_files(task) == {"two_fer.py"}
    assert task.visible_tests == ()


def test_what_does_not_fit_is_left_out_with_a_reason(exercism, tmp_path):
    imported = import_tasks(exercism, tmp_path / "tasks")
    assert [p.name for p in imported.written] == ["two-fer"]
    (reason,) = imported.skipped
    assert reason.startswith("broken: left out (")
    again = [*imported.skipped, "two-fer"]
    with pytest.raises(TaskError, match="left out"):
        import_tasks(exercism, tmp_path / "tasks")
    assert len(again) == 2


QUIXBUGS_TEST = """import pytest
from load_testdata import load_json_testcases

if pytest.use_correct:
    from correct_python_programs.add import add
else:
    from python_programs.add import add


@pytest.mark.parametrize("input_data,expected", load_json_testcases(add.__name__))
def test_add(input_data, expected):
    assert add(*input_data) == expected
"""


def test_quixbugs(tmp_path):
    loader = (
        "import json\nfrom pathlib import Path\n\n\ndef load_json_testcases(name):\n"
        "    path = Path(__file__).parent.parent / f'json_testcases/{name}.json'\n"
        "    return [json.loads(line) for line in path.read_text().splitlines()]\n"
    )
    source = write(
        tmp_path / "quixbugs",
        {
            "python_programs/add.py": 'def add(a, b):\n    return a - b\n"""\nAdd.\n"""\n',
            "python_programs/add_test.py": "raise SystemExit\n",
            "correct_python_programs/add.py": "def add(a, b):\n    return a + b\n",
            "python_testcases/test_add.py": QUIXBUGS_TEST,
            "python_testcases/load_testdata.py": loader,
            "json_testcases/add.json": "[[1, 2], 3]\n[[0, 0], 0]\n",
            "json_testcases/other.json": "[[1, 2], 3]\n",
            "conftest.py": "raise SystemExit\n",
        },
    )
    task = one(import_tasks(source, tmp_path / "tasks"))
    assert repo_files(task) == {
        "python_programs/add.py",
        "python_testcases/test_add.py",
        "python_testcases/load_testdata.py",
        "json_testcases/add.json",
        "conftest.py",
    }
    assert "One line of python_programs/add.py is wrong" in task.instruction


PATCH = """diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def double(x):
-    return x
+    return x * 2
"""
TEST_PATCH = """diff --git a/tests/test_calc.py b/tests/test_calc.py
--- a/tests/test_calc.py
+++ b/tests/test_calc.py
@@ -3,3 +3,11 @@

 def test_zero():
     assert double(0) == 0
+
+
+def test_two():
+    assert double(1) == 2
+
+
+def test_not_listed():
+    assert False
"""
CALC = {
    "calc.py": "def double(x):\n    return x\n",
    "tests/test_calc.py": "from calc import double\n\n\ndef test_zero():\n    assert double(0) == 0\n",
}


def instance(**more):
    row = {"instance_id": "me__calc-1", "repo": "calc", "problem_statement": "double does not double", "patch": PATCH}
    row |= {"test_patch": TEST_PATCH, "FAIL_TO_PASS": ["tests/test_calc.py::test_two"]}
    return row | {"PASS_TO_PASS": json.dumps(["tests/test_calc.py::test_zero"])} | more


def test_swebench_form_over_a_local_folder(tmp_path):
    write(tmp_path / "calc", CALC)
    (tmp_path / "set.jsonl").write_text(json.dumps(instance()) + "\n\n")
    task = one(import_tasks(tmp_path / "set.jsonl", tmp_path / "tasks"))
    assert task.hidden_names == ("tests/test_calc.py::test_two", "tests/test_calc.py::test_zero")
    assert "test_two" not in (task.repo / "tests" / "test_calc.py").read_text()
    assert task.instruction == "double does not double"


def test_swebench_form_at_a_commit(tmp_path):
    repo = write(tmp_path / "calc", CALC)
    run = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(repo)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "base"]):
        subprocess.run([*run, *words], check=True)
    commit = subprocess.run([*run, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (repo / "calc.py").write_text("raise SystemExit\n")
    (tmp_path / "set.jsonl").write_text(json.dumps(instance(base_commit=commit)))
    task = one(import_tasks(tmp_path / "set.jsonl", tmp_path / "tasks"))
    assert (task.repo / "calc.py").read_text() == CALC["calc.py"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"repo": "nowhere"}, "repo nowhere is no folder here; clone it"),
        ({"patch": PATCH.replace("calc.py", "../calc.py")}, "leads out of the repo"),
        ({"patch": PATCH.replace("return x\n", "return y\n")}, "git apply: error"),
        ({"FAIL_TO_PASS": [], "PASS_TO_PASS": "[]"}, "names a test"),
        ({"FAIL_TO_PASS": "tests"}, "not a JSON list"),
        ({"base_commit": "--output=/tmp/x"}, "is not a commit"),
    ],
)
def test_swebench_rows_that_do_not_fit(tmp_path, more, said):
    write(tmp_path / "calc", CALC)
    (tmp_path / "set.jsonl").write_text(json.dumps(instance(**more)))
    with pytest.raises(TaskError, match=said):
        import_tasks(tmp_path / "set.jsonl", tmp_path / "tasks")
    assert not list(tmp_path.glob("tasks/*"))


def test_a_row_that_lacks_a_field_is_named(tmp_path):
    write(tmp_path / "calc", CALC)
    row = instance()
    del row["test_patch"]
    (tmp_path / "set.jsonl").write_text(json.dumps(row))
    with pytest.raises(TaskError, match="'test_patch' is missing"):
        import_tasks(tmp_path / "set.jsonl", tmp_path / "tasks")
    (tmp_path / "set.jsonl").write_text("[1]\n")
    with pytest.raises(TaskError, match="line 1: not a JSON object"):
        import_tasks(tmp_path / "set.jsonl", tmp_path / "tasks")


def test_harbor(tmp_path):
    write_task(scaffold("theirs"), tmp_path / "dataset")
    bad = write_task(scaffold("container"), tmp_path / "dataset")
    (bad / "tests" / "test_more.py").write_text("open('/app/x')\n")
    imported = import_tasks(tmp_path / "dataset", tmp_path / "tasks")
    assert [p.name for p in imported.written] == ["theirs"]
    assert imported.skipped[0].startswith("container: left out (tests/test_more.py names /app")
    assert prove(load_task(imported.written[0]), SandboxSettings(), times=1).holds
    assert load_task(imported.written[0]).digest == load_task(tmp_path / "dataset" / "theirs").digest


def test_an_unknown_layout_and_an_unknown_name(tmp_path, exercism):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TaskError, match="no layout that is known here; name it with --format exercism"):
        import_tasks(tmp_path / "empty", tmp_path / "tasks")
    with pytest.raises(TaskError, match="no such file or folder"):
        import_tasks(tmp_path / "nothing", tmp_path / "tasks")
    with pytest.raises(TaskError, match="nothing to import there by the name three-fer"):
        import_tasks(exercism, tmp_path / "tasks", choice=Choice(only=("three-fer",)))
