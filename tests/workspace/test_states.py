"""The trees of a run, rebuilt from its events and graded in one sandbox."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.settings import SandboxSettings
from harness.workspace import changes, grade_hidden_only, lay, load_task, snapshot
from harness.workspace.copy import copy_tree
from harness.workspace.history import STARTS, grade_run
from harness.workspace.states import Rebuild, evenly, graded_states, open_bench
from harness.workspace.tree import LARGE

BOX = SandboxSettings()
CART = load_task("cart")
SOLUTION = (CART.reference / "cart.py").read_text()
HIDDEN = 11


class Made:
    """A copy that is changed step by step; `events` are what a run would have recorded."""

    def __init__(self, root: Path) -> None:
        self.root = root
        copy_tree(CART.repo, root)
        self.events: list[dict] = [{"event": "start"}]
        self._tree = snapshot(root)

    def change(self, **files: str | bytes | None) -> None:
        for name, content in files.items():
            path = self.root / name.replace("_py", ".py")
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        before, self._tree = self._tree, snapshot(self.root)
        found = changes(before, self._tree, self.root)
        event = {"event": "tree", "step": len(self.events), "call": 0, "digest": self._tree.digest, "changes": found}
        self.events.append(event)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "copy")


def passed(states: list[dict]) -> list[tuple]:
    return [(s["step"], s["hidden_passed"], s["solved"]) for s in states]


def test_each_distinct_tree_is_graded_where_it_first_stood(made):
    made.change(cart_py="broken(")
    made.change(cart_py=SOLUTION)
    made.change(cart_py="broken(")
    made.change(cart_py=SOLUTION, test_own_py="def test_own():\n    assert False\n")
    with open_bench(CART, BOX) as bench:
        states = graded_states(bench, made.events)
        alone = grade_hidden_only(CART, made.root, BOX)
        again = bench.hidden(made.root)
    assert passed(states) == [(1, 0, False), (2, HIDDEN, True), (4, HIDDEN, True)]
    assert states[-1]["digest"] == snapshot(made.root).digest
    assert {**again, "ms": 0, "output": ""} == {**alone, "ms": 0, "output": ""}


def test_what_differs_in_the_agents_tests_only_is_graded_once(made):
    made.change(cart_py=SOLUTION)
    made.change(test_own_py="x = 1\n", conftest_py="raise SystemExit\n", test_cart_py=None)
    with open_bench(CART, BOX) as bench:
        states = graded_states(bench, made.events)
        # A test file of the agent's own is laid into a graded tree, a conftest or a changed visible test is not.
        graded = len(bench._results)
    assert [s["solved"] for s in states] == [True, True]
    assert graded == 2


def test_nothing_of_one_tree_is_left_for_the_next(made):
    leaves = "import pathlib\npathlib.Path('left.py').write_text('')\npathlib.Path('/tmp/left').write_text('')\n"
    finds = (
        "import pathlib\nassert not pathlib.Path('left.py').exists()\nassert not pathlib.Path('/tmp/left').exists()\n"
    )
    made.change(cart_py=leaves + SOLUTION)
    made.change(cart_py=finds + SOLUTION)
    with open_bench(CART, BOX) as bench:
        assert [s["solved"] for s in graded_states(bench, made.events)] == [True, True]
        assert not (bench.put(CART.repo).root / "left.py").exists()


def test_a_tree_that_cannot_be_rebuilt_is_not_known_until_one_can_be_again(made):
    made.change(cart_py=SOLUTION, large_bin=b"\0" * (LARGE + 1))
    made.change(large_bin=None)
    with open_bench(CART, BOX) as bench:
        assert passed(graded_states(bench, made.events)) == [(1, None, None), (2, HIDDEN, True)]


def test_bounds_leave_nulls_and_the_last_tree_is_always_graded(made):
    for number in range(4):
        made.change(cart_py=f"# {number}\n{SOLUTION}")
    with open_bench(CART, BOX) as bench:
        assert [s["solved"] for s in graded_states(bench, made.events, most=1)] == [None, None, None, True]
        assert [s["solved"] for s in graded_states(bench, made.events, budget_s=0)] == [None] * 4


def test_an_endless_tree_is_not_known_when_the_task_would_have_given_it_longer(made):
    made.change(cart_py="while True: pass\n")
    with open_bench(CART, BOX) as bench:
        assert passed(graded_states(bench, made.events, slowest_s=1)) == [(1, None, None)]


def test_the_whole_grading_knows_the_start_from_the_cache(made, tmp_path):
    made.change(cart_py="broken(")
    first = grade_run(CART, made.root, made.events, BOX, tmp_path / "cache")
    (file,) = (tmp_path / "cache" / STARTS).iterdir()
    assert first["start"]["hidden"]["passed"] > first["hidden"]["passed"] == 0
    assert first["start"]["visible"]["total"] == 2
    stamp = file.stat().st_mtime_ns
    assert grade_run(CART, made.root, made.events, BOX, tmp_path / "cache")["start"] == first["start"]
    assert file.stat().st_mtime_ns == stamp
    file.write_text("{")
    shutil.rmtree(made.root)
    copy_tree(CART.repo, made.root)
    again = grade_run(CART, made.root, [], BOX, tmp_path / "cache")
    assert again["states"] == []
    assert again["start"]["hidden"]["tests"] == first["start"]["hidden"]["tests"] == again["hidden"]["tests"]


def test_a_recorded_change_that_leads_out_is_not_made(tmp_path):
    inside = tmp_path / "in"
    rebuilt = Rebuild(CART, inside)
    for path in ("../out.txt", str(tmp_path / "out.txt"), "a/../../out.txt"):
        change = {"path": path, "sha256": "0", "text": "x", "base64": None, "deleted": False}
        with pytest.raises(ValueError, match="leads out"):
            lay([change], inside)
        assert not rebuilt.apply({"changes": [change], "digest": "0"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


@given(st.integers(0, 200), st.integers(1, 50))
def test_evenly_spaced_numbers(count, most):
    found = list(evenly(count, most))
    assert found == sorted(set(found))
    assert len(found) == min(count, most)
    assert all(0 <= i < count for i in found)
    assert count == 0 or found[-1] == count - 1
    gaps = [b - a for a, b in itertools.pairwise(found)]
    assert not gaps or max(gaps) - min(gaps) <= 1
