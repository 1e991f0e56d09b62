from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from harness.workspace.cli import tasks_app
from harness.workspace.errors import TaskError
from harness.workspace.task_format import scaffold, write_task


def call(*words: str):
    return CliRunner().invoke(tasks_app, list(words))


def test_list_names_every_task(tmp_path):
    write_task(scaffold("mine"), tmp_path / "tasks")
    rows = json.loads(call("list", "--study", str(tmp_path), "--json").stdout)
    assert [r["name"] for r in rows] == ["cart", "lending", "mine", "stats", "todo"]
    assert next(r for r in rows if r["name"] == "todo")["hidden_tests"] == 6
    assert "mine" in call("list", "--study", str(tmp_path)).stdout


def test_a_new_task_holds_at_once(tmp_path):
    made = call("new", "my-task", "--into", str(tmp_path))
    assert made.exit_code == 0
    checked = call("check", str(tmp_path / "my-task"), "--times", "1")
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.startswith("my-task: holds; reference 2 of 2 hidden tests, untouched repo 0, visible 0 of 1")


SPOILS = {
    "reference fails": (
        {"solution/files/t.py": "def largest(values):\n    return 0\n"},
        "the reference fails test_t_hidden.py::",
    ),
    "nothing to do": ({"environment/repo/t.py": "largest = max\n"}, "the untouched repo passes every hidden test"),
    "fails what is visible": (
        {"environment/repo/test_t.py": "def test_no():\n    assert False\n"},
        "the reference fails visible tests",
    ),
    "hangs": (
        {
            "solution/files/t.py": "while True: pass\n",
            "task.toml": "[verifier]\ntimeout_sec = 3\n[metadata.calledshot]\nonly_tests = ['test_t_hidden.py::test_it']\n",
        },
        "the reference did not end in time",
    ),
    "unsteady": (
        {
            "environment/repo/t.py": "import random\n\n\ndef largest(values):\n    return random.choice([max(values), None])\n"
        },
        "end differently from run to run",
    ),
    "can't be collected": ({"tests/test_t_hidden.py": "import nowhere\n"}, "can't be collected"),
}


@pytest.mark.parametrize("how", SPOILS)
def test_a_task_that_does_not_hold_is_exit_1_and_says_why(tmp_path, how):
    folder = write_task(scaffold("t"), tmp_path)
    files, said = SPOILS[how]
    for name, text in files.items():
        (folder / name).write_text(text)
    if how == "unsteady":
        tests = "\n\n".join(
            f"def test_{n}():\n    from t import largest\n    assert largest([{n}]) == {n}" for n in range(30)
        )
        (folder / "tests" / "test_t_hidden.py").write_text(tests + "\n")
    result = call("check", str(folder), "--times", "2" if how == "unsteady" else "1", "--json")
    assert result.exit_code == 1
    (proof,) = json.loads(result.stdout)
    assert any(said in problem for problem in proof["problems"]), proof
    assert proof["holds"] is False


def test_a_task_without_a_reference_can_not_be_proved(tmp_path):
    import shutil

    folder = write_task(scaffold("t"), tmp_path)
    shutil.rmtree(folder / "solution")
    result = call("check", str(folder))
    assert result.exit_code == 1
    assert "no reference solution" in result.stdout


def test_a_wrong_request_is_one_line(tmp_path):
    result = call("check", "nothing")
    assert isinstance(result.exception, TaskError)
    assert "no such task" in str(result.exception)
    assert call("import", str(tmp_path), "--format", "mbpp").exit_code == 2


def test_import_prints_the_folders_it_wrote(tmp_path):
    write_task(scaffold("theirs"), tmp_path / "dataset")
    result = call("import", str(tmp_path / "dataset"), "--into", str(tmp_path / "tasks"))
    assert result.exit_code == 0
    assert result.stdout.strip() == str(tmp_path / "tasks" / "theirs")
    assert "1 imported, 0 left out" in result.stderr
