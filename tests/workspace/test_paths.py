from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agent.workspace import OutsideWorkspace
from harness.workspace.paths import resolve

MOUNT = "/srv/project"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "copy"
    (folder / "pkg").mkdir(parents=True)
    (folder / "a.py").write_text("a")
    (tmp_path / "secret").write_text("secret")
    return folder


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.py", "a.py"),
        ("./pkg/../a.py", "a.py"),
        ("new/deep/x.py", "new/deep/x.py"),
        (".", "."),
        ("/srv/project/a.py", "a.py"),
        ("/srv/project", "."),
        ("/srv/other/../project/pkg", "pkg"),
        ("../project/a.py", "a.py"),
    ],
)
def test_paths_inside(root, path, name):
    assert resolve(root, MOUNT, path) == root / name


@pytest.mark.parametrize(
    "path", ["..", "../secret", "/etc/passwd", "/srv", "/srv/projects/a", "pkg/../../secret", "/", "a\0b"]
)
def test_paths_outside(root, path):
    with pytest.raises(OutsideWorkspace):
        resolve(root, MOUNT, path)


def test_a_path_of_this_machine_is_outside(root):
    with pytest.raises(OutsideWorkspace, match="outside the repo"):
        resolve(root, MOUNT, str(root / "a.py"))


def test_links_are_followed_as_inside_the_sandbox(root, tmp_path):
    (root / "rel").symlink_to("pkg")
    (root / "abs").symlink_to("/srv/project/a.py")
    (root / "pkg" / "up").symlink_to("..")
    assert resolve(root, MOUNT, "rel/new.py") == root / "pkg" / "new.py"
    assert resolve(root, MOUNT, "abs") == root / "a.py"
    assert resolve(root, MOUNT, "rel/up/a.py") == root / "a.py"
    for name, target in {
        "out": str(tmp_path / "secret"),
        "dots": "../secret",
        "loop": "loop",
        "host": str(root / "a.py"),
    }.items():
        (root / name).symlink_to(target)
        with pytest.raises(OutsideWorkspace):
            resolve(root, MOUNT, name)


def test_pipes_are_refused_as_reading_one_never_ends(root):
    os.mkfifo(root / "pipe")
    with pytest.raises(OutsideWorkspace, match="neither a file nor a folder"):
        resolve(root, MOUNT, "pipe")


parts = st.sampled_from(["..", ".", "a.py", "pkg", "link", "out", "srv", "project", "", "/"])


@settings(deadline=None)
@given(st.lists(parts, max_size=8).map("/".join))
def test_what_is_resolved_lies_inside(tmp_path_factory, path):
    base = tmp_path_factory.mktemp("paths")
    root = base / "copy"
    (root / "pkg").mkdir(parents=True)
    (root / "a.py").touch()
    (root / "link").symlink_to("pkg")
    (root / "out").symlink_to(base)
    try:
        found = resolve(root, MOUNT, path)
    except OutsideWorkspace:
        return
    assert found.resolve().is_relative_to(root.resolve())
