"""The harness's own reading of a copy that commands have made awkward: never an error, never outside, never without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.agent.files_below import files_below, read_plain
from harness.agent.finish import test_names as names_of_tests
from harness.agent.guard import TestGuard
from harness.agent.guard import test_functions as functions_of
from harness.agent.tools.base import ToolError
from harness.agent.tools.files import MOST_BYTES, read_text, visible_files

TEST = "def test_a():\n    assert 1 == 1\n"


class Place:
    """A folder as a workspace for the file tools."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def resolve(self, path: str) -> Path:
        return self.root / path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "test_a.py").write_text(TEST)
    (root / "a.py").write_text("x = 1\n")
    return root


def deepen(root: Path, name: str, levels: int) -> None:
    here = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        deeper = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


@pytest.mark.parametrize(("name", "levels"), [("d", 1900), ("d" * 100, 60)])
def test_no_tree_is_too_deep(repo, name, levels):
    deepen(repo, name, levels)
    try:
        assert visible_files(repo) == ["a.py", "tests/test_a.py"]
        assert sorted(files_below(repo)) == ["a.py", "tests/test_a.py"]
        assert names_of_tests(Place(repo)) == {"tests/test_a.py::test_a"}
    finally:
        from harness.workspace.paths import remove

        remove(repo)


def in_its_place(kind: str, path: Path, outside: Path) -> None:
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(outside / "test_a.py")
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        (path / "full").mkdir(parents=True)
        (path.with_name(path.name + ".moved") / "full").mkdir(parents=True)
    elif kind == "holes":
        with path.open("wb") as f:
            f.truncate(2**40)
    elif kind == "parent":
        path.parent.rmdir()
        path.parent.symlink_to(outside)
    elif kind == "parent pipe":
        path.parent.rmdir()
        os.mkfifo(path.parent)
    elif kind == "nested":
        path.write_text("def test_a():\n    assert " + "+".join(["1"] * 20000) + "\n")
    elif kind == "shut":
        path.parent.chmod(0o500)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "kind", ["pipe", "link", "endless", "folder", "holes", "parent", "parent pipe", "nested", "shut"]
)
def test_the_guard_puts_tests_back_whatever_is_in_their_place(repo, tmp_path, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "test_a.py").write_text(TEST + "\n# of the machine\n")
    guard = TestGuard(repo)
    in_its_place(kind, repo / "tests" / "test_a.py", outside)
    names_of_tests(Place(repo))
    (restored,) = guard.check()
    assert restored.path == "tests/test_a.py"
    assert (repo / "tests" / "test_a.py").read_text() == TEST
    assert not (repo / "tests").is_symlink()
    assert (outside / "test_a.py").read_text() == TEST + "\n# of the machine\n"
    assert guard.check() == []


def test_a_file_that_says_any_size_is_not_read_into_a_message(repo):
    with (repo / "large.txt").open("wb") as f:
        f.truncate(MOST_BYTES + 1)
    with pytest.raises(ToolError, match="larger than 16 MiB"):
        read_text(Place(repo), "large.txt")
    assert read_plain(repo / "large.txt") is None


def test_tests_nested_too_deep_to_be_written_out_are_no_tests():
    assert functions_of("def test_a():\n    assert " + "-" * 5000 + "1\n") == {}
