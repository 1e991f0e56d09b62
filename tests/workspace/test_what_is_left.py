"""A copy that commands have filled with what is awkward: the harness looks at it, copies it, grades it and deletes it all the same.

Run again as another user by test_ordinary_user.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.settings import SandboxSettings
from harness.workspace import grade, load_task, open_workspace
from harness.workspace.copy import Copy, copy_left, copy_of
from harness.workspace.laying import fresh_tree
from harness.workspace.paths import remove, temporary
from harness.workspace.tree import changes, diff, snapshot

MESS = r"""
mkfifo pipe; mkdir -p shut/inner; echo x > shut/inner/f; chmod 000 shut; echo y > unreadable; chmod 000 unreadable
ln -s loop loop; ln -s / root; ln -s ../../.. up; touch "$(printf 'caf\351 \n -x')" ./-rf; chmod 4777 ./-rf
python - <<'CODE'
import os, socket
socket.socket(socket.AF_UNIX).bind("socket")
for i in range(40):
    with open(f"holes{i}", "wb") as f:
        f.truncate(2**30)
CODE
"""
DEEP = """python -c 'import os
for i in range(1500):
    os.mkdir("d" * 60); os.chdir("d" * 60)
open("f", "w").close()'
"""


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    copy = copy_of(load_task("cart").repo, tmp_path / "run")
    with open_workspace(copy, SandboxSettings(disk_bytes=2**62)) as workspace:
        result = workspace.run(MESS, timeout_s=120)
        assert (result.exit_code, result.limit) == (0, None), result
        assert workspace.run(DEEP, timeout_s=120).limit == "disk"
        assert workspace.run("echo next", timeout_s=60).stdout == "next\n"
    yield copy.root
    remove(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_tree_that_commands_left_is_looked_at_and_graded(messy, monkeypatch):
    # Reading two gigabytes of holes takes seconds; the bound is the same with less.
    for place in ("paths", "copy", "tree"):
        monkeypatch.setattr(f"harness.workspace.{place}.MOST_BYTES", 2**28)
    task = load_task("cart")
    before, after = snapshot(task.repo), snapshot(messy)
    assert {f"holes{i}" for i in range(40)} <= after.unread
    assert after.files["cart.py"] == before.files["cart.py"]
    assert json.dumps(changes(before, after, messy), ensure_ascii=False).encode()
    assert "holes0" in diff(task, messy)
    with temporary() as folder:
        tree = fresh_tree(task, messy, folder / "tree")
        assert (tree / "cart.py").is_file()
        assert not (tree / "holes0").exists()
        copy_left(messy, folder / "left")
        assert (folder / "left" / "cart.py").is_file()
    document = grade(task, messy, SandboxSettings())
    assert document["hidden"]["total"] > 0
    assert json.dumps(document, ensure_ascii=False).encode()


def test_every_folder_can_be_deleted(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    with temporary(tmp_path) as folder:
        (folder / "link").symlink_to(outside)
        copy = Copy(folder / "project", folder / "tmp")
        copy.root.mkdir()
        copy.scratch.mkdir()
        with open_workspace(copy, SandboxSettings(disk_bytes=2**62)) as workspace:
            workspace.run(f"ln -s {outside} out; mkdir -p a/b; ln -s {outside} a/b/out\n{MESS}{DEEP}", timeout_s=120)
    assert not folder.exists()
    assert (outside / "kept").read_text() == "kept"
