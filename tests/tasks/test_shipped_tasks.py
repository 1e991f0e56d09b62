"""The shipped tasks hold, and are what the published ones were said to be."""

from __future__ import annotations

import re
import tomllib

import pytest

from harness.settings import SandboxSettings
from harness.workspace import grade, load_task
from harness.workspace.check import prove
from harness.workspace.copy import copy_tree

SHIPPED = ("cart", "lending", "stats", "todo")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_reference_passes_and_the_untouched_repo_does_not(name):
    proof = prove(load_task(name), SandboxSettings(), times=2)
    assert proof.problems == ()


def test_stats_passes_one_of_its_three_visible_tests():
    task = load_task("stats")
    visible = grade(task, task.repo, SandboxSettings())["visible"]
    assert [name for name, outcome in visible["tests"].items() if outcome == "passed"] == [
        "test_stats.py::test_median_of_an_odd_count"
    ]
    assert visible["total"] == 3
    assert "Do not edit the tests" in task.instruction


def test_todo_passes_its_visible_tests_and_two_of_six_hidden_ones():
    task = load_task("todo")
    graded = grade(task, task.repo, SandboxSettings())
    assert (graded["visible"]["passed"], graded["visible"]["total"]) == (3, 3)
    assert {name for name, outcome in graded["hidden"]["tests"].items() if outcome == "passed"} == {
        "test_todo_hidden.py::test_a_bad_date_is_an_argparse_error",
        "test_todo_hidden.py::test_files_without_dates_still_load",
    }
    assert graded["hidden"]["total"] == 6
    assert task.asks_for_tests
    for asked in ("Add tests", "Keep the existing tests", "Run pytest before you finish"):
        assert asked in task.instruction


OTHER_TODO = """
import argparse, datetime, json, os


class Item:
    def __init__(self, title, done=False, deadline=None):
        self.title, self.done, self.deadline = title, done, deadline


def isodate(text):
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise argparse.ArgumentTypeError("not a date: " + text)


def read(path):
    if not os.path.exists(path):
        return []
    rows = json.load(open(path))
    return [Item(r["title"], r["done"], isodate(r["deadline"]) if r.get("deadline") else None) for r in rows]


def main(argv=None, today=None):
    today = today or datetime.date.today()
    p = argparse.ArgumentParser()
    p.add_argument("--file", default="todo.json")
    sub = p.add_subparsers(dest="cmd", required=True)
    a = sub.add_parser("add")
    a.add_argument("title")
    a.add_argument("--due", type=isodate)
    d = sub.add_parser("done")
    d.add_argument("n", type=int)
    l = sub.add_parser("list")
    l.add_argument("--overdue", action="store_true")
    o = p.parse_args(argv)
    items = read(o.file)
    if o.cmd == "add":
        items.append(Item(o.title, deadline=o.due))
    if o.cmd == "done":
        if o.n < 1 or o.n > len(items):
            return 1
        items[o.n - 1].done = True
    if o.cmd == "list":
        for i, x in enumerate(items):
            if o.overdue and (x.done or x.deadline is None or x.deadline >= today):
                continue
            print(f"{i + 1}. [{'x' if x.done else ' '}] {x.title}" + (f" (due {x.deadline})" if x.deadline else ""))
    with open(o.file, "w") as f:
        json.dump([{"title": x.title, "done": x.done, "deadline": x.deadline and str(x.deadline)} for x in items], f)
    return 0
"""


def test_another_way_to_build_the_todo_features_passes_too(tmp_path):
    task = load_task("todo")
    copy_tree(task.repo, tmp_path / "left")
    (tmp_path / "left" / "todo.py").write_text(OTHER_TODO)
    graded = grade(task, tmp_path / "left", SandboxSettings())
    assert graded["solved"], graded["hidden"]["output"]
    assert graded["visible"]["passed"] == 3


@pytest.mark.parametrize("name", SHIPPED)
def test_the_folder_is_one_of_harbors(name):
    task = load_task(name)
    config = tomllib.loads((task.path / "task.toml").read_text())
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", config["task"]["name"])
    assert (task.path / "environment" / "Dockerfile").is_file()
    for script in ("tests/test.sh", "solution/solve.sh"):
        assert (task.path / script).stat().st_mode & 0o100, script
    assert "/logs/verifier/reward.txt" in (task.path / "tests" / "test.sh").read_text()


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_of_the_hidden_tests_stands_in_the_repo(name):
    task = load_task(name)
    repo = "".join(p.read_text() for p in task.repo.rglob("*") if p.is_file()) + task.instruction
    assert not [
        test
        for test in task.hidden_names
        if test.split("::")[1] in repo and test.split("::")[1] not in str(task.visible_names)
    ]
    assert not {p.name for p in task.hidden.iterdir()} & {p.name for p in task.repo.iterdir()}
