"""The test guard puts original tests back, whatever was done to the file, and lets new tests stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agent.guard import TestGuard
from harness.agent.guard import test_functions as functions_of

ORIGINAL = "def test_a():\n    assert 1 == 1\n\n\ndef test_b():\n    assert 2 == 2\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "test_x.py").write_text(ORIGINAL)
    (tmp_path / "sub" / "test_y.py").write_text("def test_c():\n    pass\n")
    return tmp_path


@pytest.mark.parametrize(
    "text", ["", "def test_a(:", "def test_a():\n    assert 1 == 1\n", ORIGINAL.replace("2 == 2", "True")]
)
def test_a_damaged_file_is_put_back_with_the_published_note(repo, text):
    guard = TestGuard(repo)
    (repo / "test_x.py").write_text(text)
    (put_back,) = guard.check()
    names = {"": "test_a, test_b", "def test_a(:": "test_a, test_b"}.get(text, "test_b")
    assert put_back.note == (
        f"test_x.py was put back: the existing tests {names} are read-only. Add new test functions instead of changing these."
    )
    assert (repo / "test_x.py").read_text() == ORIGINAL
    assert guard.check() == []


def test_a_missing_file_a_folder_and_a_link_in_its_place_are_put_back(repo):
    guard = TestGuard(repo)
    target = repo / "test_x.py"
    target.unlink()
    assert len(guard.check()) == 1
    target.unlink()
    target.mkdir()
    (target / "kept").write_text("x")
    assert len(guard.check()) == 1
    outside = repo.parent / "outside.py"
    outside.write_text("precious")
    target.unlink()
    target.symlink_to(outside)
    assert len(guard.check()) == 1
    assert outside.read_text() == "precious"
    assert target.read_text() == ORIGINAL


def test_a_removed_folder_is_made_again_and_several_files_give_several_notes(repo):
    guard = TestGuard(repo)
    (repo / "sub" / "test_y.py").unlink()
    (repo / "sub").rmdir()
    (repo / "test_x.py").write_text("")
    assert [p.path for p in guard.check()] == ["sub/test_y.py", "test_x.py"]


def test_added_tests_stay_and_become_the_last_good_text(repo):
    guard = TestGuard(repo)
    more = "import os\n\n# a comment\n" + ORIGINAL.replace("1 == 1", "1  ==  1") + "\n\ndef test_new():\n    pass\n"
    (repo / "test_x.py").write_text(more)
    assert guard.check() == []
    (repo / "test_x.py").write_text("")
    assert len(guard.check()) == 1
    assert (repo / "test_x.py").read_text() == more


def test_not_covered_as_published():
    assert (
        set(functions_of("async def test_a(): pass\nclass T:\n    def test_b(self): pass\ndef helper(): pass")) == set()
    )


@given(text=st.text(max_size=200))
@settings(max_examples=60)
def test_idempotent_for_any_text(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("guard")
    (folder / "test_x.py").write_text(ORIGINAL)
    guard = TestGuard(folder)
    (folder / "test_x.py").write_bytes(text.encode("utf-8", errors="replace"))
    guard.check()
    after = (folder / "test_x.py").read_bytes()
    assert guard.check() == []
    assert (folder / "test_x.py").read_bytes() == after
    assert {"test_a", "test_b"} <= set(functions_of(after.decode(errors="replace")))
