from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.workspace import list_tasks, load_task
from harness.workspace.copy import copy_tree
from harness.workspace.errors import TaskError
from harness.workspace.functions import test_functions as functions_of
from harness.workspace.task_format import Draft, scaffold, write_task
from harness.workspace.tasks import digest


@pytest.fixture
def folder(tmp_path):
    return write_task(scaffold("mine"), tmp_path)


def test_what_is_written_is_loaded(tmp_path):
    draft = Draft(
        name="full.task-1",
        description='say "hi"\n\\ and ü',
        instruction="Do it.\n",
        repo={"pkg/a.py": "a = 1\n", "check_a.py": "def test_a():\n    assert True\n"},
        tests={"test_h.py": "def test_h():\n    assert True\n"},
        reference={"pkg/a.py": "a = 2\n"},
        timeout_s=7.5,
        asks_for_tests=True,
        visible_tests=["check_a.py"],
        only_tests=["test_h.py::test_h"],
        packages=["pluggy"],
    )
    task = load_task(write_task(draft, tmp_path))
    assert (task.name, task.instruction, task.timeout_s, task.asks_for_tests) == ("full.task-1", "Do it.", 7.5, True)
    assert (task.visible_tests, task.only_tests, task.packages) == (
        ("check_a.py",),
        ("test_h.py::test_h",),
        ("pluggy",),
    )
    assert task.visible_names == ("check_a.py::test_a",)
    assert (task.reference / "pkg" / "a.py").read_text() == "a = 2\n"
    assert hash(task) == hash(load_task(task.path))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: (f / "task.toml").unlink(), r"task.toml: missing; .* tasks new"),
        (lambda f: (f / "task.toml").write_text("= 1"), r"task.toml: not TOML"),
        (lambda f: (f / "instruction.md").unlink(), r"instruction.md: missing; write what"),
        (lambda f: (f / "instruction.md").write_text(" \n"), r"instruction.md: empty"),
        (lambda f: shutil.rmtree(f / "tests"), r"tests: no hidden tests; .* at least one test_\*.py"),
        (lambda f: (f / "tests" / "test_mine_hidden.py").rename(f / "tests" / "mine.py"), r"tests: no hidden tests"),
        (lambda f: shutil.rmtree(f / "environment" / "repo"), r"environment/repo: missing"),
        (lambda f: (f / "environment" / "repo" / "l").symlink_to("/etc"), r"repo/l: a link that leads out of"),
        (lambda f: (f / "environment" / "repo" / "l").symlink_to("../Dockerfile"), r"repo/l: a link that leads out of"),
        (lambda f: (f / "tests" / "l").symlink_to("l"), r"tests/l: a link that leads out of"),
        (
            lambda f: (f / "task.toml").write_text('[metadata.calledshot]\nvisible_tests = ["test_no.py"]'),
            r"task.toml: visible_tests names test_no.py",
        ),
        (
            lambda f: (f / "task.toml").write_text("[metadata.calledshot]\nasks = 1"),
            r"calledshot.asks: no such key; known are asks_for",
        ),
        (
            lambda f: (f / "task.toml").write_text("[metadata.calledshot]\npackages = 1"),
            r"packages: expected a list of texts",
        ),
        (
            lambda f: (f / "task.toml").write_text("[verifier]\ntimeout_sec = -1"),
            r"timeout_sec must be a number of seconds above 0",
        ),
    ],
)
def test_a_folder_that_is_not_whole_is_refused_in_one_line(folder, spoil, said):
    spoil(folder)
    with pytest.raises(TaskError, match=said) as error:
        load_task(folder)
    assert "\n" not in str(error.value)


def test_a_task_that_is_too_large_is_refused(folder):
    with (folder / "environment" / "repo" / "huge").open("wb") as f:
        f.truncate(300 * 2**20)
    with pytest.raises(TaskError, match="larger than 256 MiB or 20000 files; take out"):
        load_task(folder)


def test_large_and_binary_files_are_copied(folder, tmp_path):
    (folder / "environment" / "repo" / "data.bin").write_bytes(b"\0\xff" * 2**20)
    (folder / "environment" / "repo" / "inner").symlink_to("data.bin")
    task = load_task(folder)
    copy_tree(task.repo, tmp_path / "copy")
    assert (tmp_path / "copy" / "inner").read_bytes() == b"\0\xff" * 2**20


def test_the_digest_covers_names_modes_and_bytes_but_no_caches(folder, tmp_path):
    before = digest(folder)
    copy_tree(folder, tmp_path / "elsewhere")
    assert digest(tmp_path / "elsewhere") == before
    cache = folder / "tests" / "__pycache__"
    cache.mkdir()
    (cache / "x.pyc").write_bytes(b"x")
    assert digest(folder) == before
    seen = {before}
    for change in (
        lambda: (folder / "instruction.md").write_text("Other."),
        lambda: (folder / "instruction.md").chmod(0o755),
        lambda: (folder / "instruction.md").rename(folder / "asked.md"),
        lambda: (folder / "link").symlink_to("asked.md"),
        lambda: (folder / "solution" / "files" / "mine.py").write_text("pass\n"),
    ):
        change()
        seen.add(digest(folder))
    assert len(seen) == 6


def test_the_digest_does_not_depend_on_who_may_read(folder):
    before = digest(folder)
    (folder / "instruction.md").chmod(0o600)
    assert digest(folder) == before, "a checkout's umask is not part of the task"


def test_the_study_comes_before_the_shipped_tasks(tmp_path):
    own = write_task(scaffold("cart"), tmp_path / "tasks")
    assert load_task("cart", study=tmp_path).path == own.resolve()
    assert load_task("cart").path != own.resolve()
    assert {"cart", "lending", "stats", "todo"} <= set(list_tasks(tmp_path))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(TaskError, match="task nothing: no such task; known are cart, lending, stats, todo"):
        load_task("nothing")
    with pytest.raises(TaskError, match="no such task folder"):
        load_task(Path("/nowhere/at/all"))


def test_harbors_canary_lines_are_not_for_the_agent(folder):
    (folder / "instruction.md").write_text("<!-- benchmark canary GUID 1 -->\n# canary 2\n\n# Title\nDo it.\n")
    assert load_task(folder).instruction == "# Title\nDo it."


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(TaskError, match="leads out"):
        write_task(Draft("t", "", "x", {"../../../../x.py": ""}, {}, {}), tmp_path)
    assert not (tmp_path / "t").exists()
    with pytest.raises(TaskError, match="not a task name"):
        write_task(scaffold("../x"), tmp_path)
    write_task(scaffold("taken"), tmp_path)
    with pytest.raises(TaskError, match="is there already"):
        write_task(scaffold("taken"), tmp_path)


def test_functions_are_compared_by_meaning():
    one = functions_of(
        "import pytest\n\nclass TestA:\n    def test_x(self):\n        assert 1 == 1  # why\n\nasync def test_y(): pass\n"
    )
    two = functions_of("class TestA:\n  def test_x(self):\n    assert (1==1)\n\nasync def test_y():\n    pass\n")
    assert one == two
    assert set(one) == {"TestA::test_x", "test_y"}
    skipped = functions_of("import pytest\nclass TestA:\n  @pytest.mark.skip\n  def test_x(self):\n    assert 1 == 1\n")
    assert skipped["TestA::test_x"] != one["TestA::test_x"]
    assert functions_of("def test_x(:\n") == functions_of("\0") == {}
