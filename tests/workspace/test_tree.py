from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.workspace import changes, diff, fresh_copy, lay, load_task, snapshot
from harness.workspace.copy import copy_of, copy_tree
from harness.workspace.errors import TaskError


@pytest.fixture
def repo(tmp_path):
    root = tmp_path / "repo"
    (root / "pkg").mkdir(parents=True)
    (root / "a.py").write_text("one\ntwo\n")
    (root / "pkg" / "b.py").write_text("b = 1\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "data.bin").write_bytes(b"\0\1\2")
    return root


def test_a_copy_keeps_modes_and_links_and_follows_none(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (repo / "in").symlink_to("pkg/b.py")
    (repo / "out").symlink_to(outside)
    os.mkfifo(repo / "pipe")
    copy = copy_of(repo, tmp_path / "run")
    assert copy.root.name == "project"
    assert (copy.root / "run.sh").stat().st_mode & 0o777 == 0o755
    assert str((copy.root / "in").readlink()) == "pkg/b.py"
    assert (copy.root / "out").is_symlink()
    assert not (copy.root / "pipe").exists()
    assert snapshot(copy.root) == snapshot(repo)


def test_two_runs_do_not_share_a_folder(repo, tmp_path):
    copy_of(repo, tmp_path / "run")
    with pytest.raises(TaskError, match="fresh folder"):
        copy_of(repo, tmp_path / "run")


def test_a_copy_of_a_read_only_repo_can_be_changed(repo, tmp_path):
    (repo / "a.py").chmod(0o444)
    copy = copy_of(repo, tmp_path / "run")
    assert (copy.root / "a.py").stat().st_mode & 0o200


def test_caches_and_git_are_no_part_of_a_tree(repo):
    before = snapshot(repo)
    for name in ("__pycache__/a.cpython-311.pyc", ".pytest_cache/x", ".git/HEAD", "pkg/__pycache__/y.pyc"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("cache")
    assert snapshot(repo) == before


def test_changes_say_what_became_of_each_file(repo):
    before = snapshot(repo)
    (repo / "a.py").write_text("one\n2\n")
    (repo / "pkg" / "b.py").unlink()
    (repo / "new.bin").write_bytes(b"\xff\0")
    (repo / "link").symlink_to("a.py")
    (repo / "large").write_bytes(b"x" * (2**20 + 1))
    found = {c["path"]: c for c in changes(before, snapshot(repo), repo)}
    assert set(found) == {"a.py", "pkg/b.py", "new.bin", "link", "large"}
    assert found["a.py"]["text"] == "one\n2\n"
    assert found["pkg/b.py"] == {"path": "pkg/b.py", "sha256": None, "text": None, "base64": None, "deleted": True}
    assert (found["new.bin"]["text"], found["new.bin"]["base64"]) == (None, "/wA=")
    assert (found["link"]["text"], found["link"]["link"]) == ("a.py", True)
    assert found["large"]["text"] is found["large"]["base64"] is None
    assert len(found["large"]["sha256"]) == 64


names = st.sampled_from(["a", "b", "d/x", "d/y", "d/e/z", "é"])
files = st.dictionaries(
    names, st.one_of(st.binary(max_size=20), st.text(max_size=20).map(lambda t: t.encode("utf-8", "replace")))
)


@settings(deadline=None)
@given(files, files)
def test_laying_recorded_changes_gives_the_recorded_tree(tmp_path_factory, first, second):
    old, new = tmp_path_factory.mktemp("old"), tmp_path_factory.mktemp("new")
    for root, tree in ((old, first), (new, second)):
        for name, data in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
    recorded = changes(snapshot(old), snapshot(new), new)
    lay(recorded, old)
    assert snapshot(old) == snapshot(new)


def test_laying_never_writes_through_a_link(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / "d").symlink_to(outside)
    lay([{"path": "d/x", "sha256": "", "text": "t", "base64": None, "deleted": False}], repo)
    assert not list(outside.iterdir())
    assert (repo / "d" / "x").read_text() == "t"


def test_a_diff_can_be_applied_by_git(tmp_path):
    task = load_task("todo")
    copy = fresh_copy(task, tmp_path / "run")
    (copy.root / "todo.py").write_text((task.reference / "todo.py").read_text())
    (copy.root / "new.py").write_text("no newline at the end")
    (copy.root / "test_todo.py").unlink()
    text = diff(task, copy.root)
    other = tmp_path / "other"
    copy_tree(task.repo, other)
    subprocess.run(["git", "apply", "-"], input=text, text=True, cwd=other, check=True)
    assert snapshot(other) == snapshot(copy.root)


def test_a_diff_names_binary_files_and_shows_odd_lines(tmp_path):
    task = load_task("cart")
    copy = fresh_copy(task, tmp_path / "run")
    assert diff(task, copy.root) == ""
    (copy.root / "x.bin").write_bytes(b"\0")
    (copy.root / "odd.txt").write_bytes("a\r\nb\x0cc\u2028d\n".encode())
    (copy.root / "empty").touch()
    assert diff(task, copy.root) == (
        "--- /dev/null\n+++ b/empty\n"
        "--- /dev/null\n+++ b/odd.txt\n@@ -0,0 +1,2 @@\n+a\r\n+b\x0cc\u2028d\n"
        "Binary files /dev/null and b/x.bin differ\n"
    )
