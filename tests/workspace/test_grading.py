"""Grading on real runs of pytest in real sandboxes: what counts, and what does not fool it."""

from __future__ import annotations

import shutil

import pytest

from harness.settings import SandboxSettings
from harness.workspace import grade, grade_hidden_only, load_task
from harness.workspace.copy import copy_tree
from harness.workspace.errors import TaskError
from harness.workspace.grading import grade_visible_only
from harness.workspace.laying import reference_tree

BOX = SandboxSettings()
HIDDEN = 11


@pytest.fixture
def cart(tmp_path):
    """The cart task and a copy of its repo as an agent would leave it untouched."""
    task = load_task("cart")
    root = tmp_path / "left"
    copy_tree(task.repo, root)
    return task, root


def repair(task, root):
    shutil.copyfile(task.reference / "cart.py", root / "cart.py")


def outcomes(result):
    return set(result["tests"].values())


def test_the_reference_is_solved(cart):
    task, root = cart
    repair(task, root)
    graded = grade(task, root, BOX)
    assert graded["solved"] is True
    assert (graded["hidden"]["exit_code"], graded["hidden"]["passed"], graded["hidden"]["total"]) == (0, HIDDEN, HIDDEN)
    assert graded["visible"]["tests"] == {
        "test_cart.py::test_total": "passed",
        "test_cart.py::test_discounted": "passed",
    }
    assert graded["visible_left"]["tests"] == graded["visible"]["tests"]
    assert (graded["changed"], graded["files_changed"]) == (["cart.py"], 1)
    assert graded["tampered"] == graded["tests_added"] == graded["tests_removed"] == []


def test_the_untouched_repo_is_not_solved_and_stays_as_it_is(cart):
    task, root = cart
    graded = grade(task, root, BOX)
    assert graded["solved"] is False
    assert (graded["hidden"]["exit_code"], graded["hidden"]["total"]) == (1, HIDDEN)
    assert (graded["visible"]["passed"], graded["changed"]) == (0, [])
    assert sorted(p.name for p in root.iterdir()) == ["cart.py", "test_cart.py"]


def test_edited_tests_and_added_ones_are_told_apart(cart):
    task, root = cart
    (root / "test_cart.py").write_text(
        "def test_discounted():\n    assert True\n\n\nclass TestMore:\n    def test_new(self):\n        assert True\n"
    )
    (root / "sub").mkdir()
    (root / "sub" / "test_other.py").write_text("def test_other():\n    assert True\n")
    graded = grade(task, root, BOX)
    assert graded["solved"] is False
    assert outcomes(graded["visible"]) == {"failed"}, "the original tests count"
    assert outcomes(graded["visible_left"]) == {"passed"}
    assert graded["visible_left"]["total"] == 3
    assert graded["tampered"] == ["test_cart.py::test_total", "test_cart.py::test_discounted"]
    assert graded["tests_removed"] == ["test_cart.py::test_total"]
    assert graded["tests_added"] == ["sub/test_other.py::test_other", "test_cart.py::TestMore::test_new"]


def test_comments_in_tests_are_no_tampering(cart):
    task, root = cart
    text = (root / "test_cart.py").read_text()
    (root / "test_cart.py").write_text("# a note\n" + text.replace("    assert", "    # why\n    assert"))
    assert grade(task, root, BOX)["tampered"] == []


PASS_ALL = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
"""

FORGED = """
import json, os

NAME = "test_cart_hidden.py::test_total_of_an_empty_list_is_zero"
for fd in range(3, 40):
    try:
        for when in ("setup", "call", "teardown"):
            os.write(fd, json.dumps(["", "phase", NAME, when, "passed"]).encode() + b"\\n")
        os.write(fd, b'["", "exit", 0]\\n')
    except OSError:
        pass
os._exit(0)
"""

CHEATS = {
    "conftest": {"conftest.py": PASS_ALL},
    "settings": {
        "pytest.ini": "[pytest]\naddopts = --collect-only -p cheat\n",
        "cheat.py": PASS_ALL,
        "tox.ini": "[pytest]\naddopts = -p cheat\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p cheat"\n',
    },
    "start-up hooks": {"sitecustomize.py": "import os\nos._exit(0)\n", "usercustomize.py": "import os\nos._exit(0)\n"},
    "own pytest": {"pytest.py": "raise SystemExit(0)\n", "_pytest/__init__.py": "raise SystemExit(0)\n"},
    "exit at import": {"cart.py": "import os\nprint('11 passed')\nos._exit(0)\n"},
    "exit in a call": {"cart.py": "import os\ndef total(p): os._exit(0)\ndiscounted = total\n"},
    "system exit": {"cart.py": "import sys\nprint('11 passed')\nsys.exit(0)\n"},
    "pytest.exit": {"cart.py": "import pytest\ndef total(p): pytest.exit('all fine', 0)\ndiscounted = total\n"},
    "skip": {
        "cart.py": "import pytest\ndef total(p): pytest.skip('later')\ndef discounted(a, b): pytest.xfail('later')\n"
    },
    "printed text": {"cart.py": "def total(p):\n    print('11 passed in 0.01s')\ndiscounted = lambda a, b: total(a)\n"},
    "forged lines": {"cart.py": FORGED},
    "no-op tests": {
        "cart.py": "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\ntotal = discounted = None\n"
    },
    "bent reports": {
        "cart.py": "import _pytest.reports as r\nnew = r.TestReport.from_item_and_call\n"
        "def bent(item, call):\n    report = new(item, call)\n    report.outcome = 'passed'\n    return report\n"
        "r.TestReport.from_item_and_call = staticmethod(bent)\ntotal = discounted = lambda *a: None\n"
    },
    "edited tests": {"test_cart.py": "def test_total():\n    assert True\n"},
    "own hidden tests": {"test_cart_hidden.py": "def test_total_of_an_empty_list_is_zero():\n    assert True\n"},
    "a folder in the way": {"test_cart_hidden.py/x.py": "", "test_cart.py.d/x": ""},
}
SOUND_TESTS = {
    "test_total_of_an_empty_list_is_zero",
    "test_discount_of_nothing_changes_nothing",
    "test_total_adds_every_price[prices3-7]",
}


@pytest.mark.parametrize("name", CHEATS)
def test_no_trick_is_taken_for_a_solution(cart, name):
    task, root = cart
    for path, text in CHEATS[name].items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    hidden = grade_hidden_only(task, root, BOX)
    passed = {test.split("::")[1] for test, outcome in hidden["tests"].items() if outcome == "passed"}
    # Where the code itself was left alone, what it passes stays the same.
    assert passed == (set() if "cart.py" in CHEATS[name] else SOUND_TESTS), hidden
    assert hidden["total"] == HIDDEN > hidden["passed"]


@pytest.mark.parametrize("name", ["exit at import", "no-op tests", "edited tests", "conftest"])
def test_tricks_do_not_pass_the_visible_tests_either(cart, name):
    task, root = cart
    for path, text in CHEATS[name].items():
        (root / path).write_text(text)
    assert grade_visible_only(task, root, BOX)["passed"] == 0


def test_tricks_do_not_break_a_real_repair_either(cart):
    task, root = cart
    repair(task, root)
    for path, text in {**CHEATS["conftest"], **CHEATS["settings"], **CHEATS["start-up hooks"]}.items():
        (root / path).write_text(text)
    assert grade_hidden_only(task, root, BOX)["passed"] == HIDDEN


def test_a_repair_in_a_module_that_is_named_like_a_plugin_counts(cart):
    task, root = cart
    (root / "cart.py").write_text("from numbers_of_cart import discounted, total\n")
    shutil.copyfile(task.reference / "cart.py", root / "numbers_of_cart.py")
    (root / "__init__.py").touch()
    assert grade(task, root, BOX)["solved"] is True


def test_code_that_never_ends_is_stopped(cart, tmp_path):
    task, root = cart
    copy_tree(task.path, tmp_path / "slow")
    toml = tmp_path / "slow" / "task.toml"
    toml.write_text(toml.read_text().replace("timeout_sec = 60", "timeout_sec = 3"))
    slow = load_task(tmp_path / "slow")
    (root / "cart.py").write_text(
        "def total(p):\n    while True: pass\n\ndef discounted(a, b):\n    return a - a * b / 100\n"
    )
    result = grade_hidden_only(slow, root, BOX)
    assert (result["timed_out"], result["exit_code"]) == (True, None)
    assert outcomes(result) == {"missing"}


def test_broken_code_is_missing_not_passed(cart):
    task, root = cart
    (root / "cart.py").write_text("def total(:\n")
    graded = grade(task, root, BOX)
    assert outcomes(graded["hidden"]) == {"missing"}
    assert graded["hidden"]["exit_code"] == 2
    assert "SyntaxError" in graded["hidden"]["output"]


def test_a_deleted_repo_can_be_graded(cart):
    task, root = cart
    shutil.rmtree(root)
    root.mkdir()
    graded = grade(task, root, BOX)
    assert (graded["solved"], graded["visible_left"]["total"]) == (False, 0)
    assert graded["tests_removed"] == ["test_cart.py::test_total", "test_cart.py::test_discounted"]


def test_settings_of_the_task_itself_hold(tmp_path):
    copy_tree(load_task("cart").path, tmp_path / "marked")
    repo = tmp_path / "marked" / "environment" / "repo"
    (repo / "src").mkdir()
    (repo / "cart.py").rename(repo / "src" / "cart.py")
    (repo / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    files = tmp_path / "marked" / "solution" / "files"
    (files / "src").mkdir()
    (files / "cart.py").rename(files / "src" / "cart.py")
    task = load_task(tmp_path / "marked")
    root = reference_tree(task, tmp_path / "left")
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--collect-only"\n')
    assert grade(task, root, BOX)["solved"] is True


def test_hidden_tests_that_can_not_be_collected_are_the_tasks_fault(tmp_path):
    copy_tree(load_task("cart").path, tmp_path / "bad")
    (tmp_path / "bad" / "tests" / "test_cart_hidden.py").write_text(
        "from nowhere import x\n\ndef test_x():\n    assert x\n"
    )
    task = load_task(tmp_path / "bad")
    with pytest.raises(TaskError, match=r"task bad: the tests in test_cart_hidden.py can't be collected .*nowhere"):
        grade_hidden_only(task, task.repo, BOX)


def test_grading_without_a_sandbox(cart):
    task, root = cart
    repair(task, root)
    hidden = grade_hidden_only(task, root, SandboxSettings(kind="none"))
    assert (hidden["exit_code"], hidden["passed"], hidden["total"]) == (0, HIDDEN, HIDDEN)
