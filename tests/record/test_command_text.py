"""What the text of a shell command shows: places outside the copy, guesses, test runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record.commands import is_guess, is_test_file, outside_paths, runs_pytest

MOUNT = "/home/agent/copy"


@pytest.mark.parametrize(
    ("command", "outside"),
    [
        ("cd /tmp && rm -f todos.json && python /app/todo.py add x", ["/tmp", "/app/todo.py"]),
        ("pytest -q 2>&1 | tail -5", []),
        ("ls > /dev/null 2>/dev/null", []),
        (f"cat {MOUNT}/a.py {MOUNT}", []),
        (f"cat {MOUNT}-other/a.py", [f"{MOUNT}-other/a.py"]),
        ("ls ../.. a/../b ~/x", ["../..", "~/x"]),
        ("pytest --basetemp=/x", ["/x"]),
        ("sed -n '/def total/,/return/p' cart.py", []),
        ("cat <<'EOF' > a.py\nopen('/etc/passwd')\nEOF\nls /srv", ["/srv"]),
        ("cat 'unbalanced /etc/passwd", ["/etc/passwd"]),
    ],
)
def test_outside_paths(command: str, outside: list[str]) -> None:
    assert outside_paths(command, MOUNT) == outside


def test_without_a_known_mount_every_absolute_path_is_outside() -> None:
    assert outside_paths("cat /home/agent/copy/a.py b.py", None) == ["/home/agent/copy/a.py"]


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("pytest", True),
        ("python -m pytest -q 2>&1 | tail -3", True),
        ("cd sub && PYTHONPATH=. python3.11 -m pytest tests", True),
        ("timeout 30 pytest -x", True),
        (".venv/bin/pytest", True),
        ("cat pytest.ini", False),
        ("echo run pytest now", False),
        ("pip show pytest", False),
        ("cat <<EOF > notes\npytest\nEOF", False),
    ],
)
def test_runs_pytest(command: str, runs: bool) -> None:
    assert runs_pytest(command) is runs


@pytest.mark.parametrize(
    ("path", "guess"),
    [("/repo", True), ("/app/todo.py", True), ("/repository", False), ("/tmp", False), ("app/x", False)],
)
def test_guesses(path: str, guess: bool) -> None:
    assert is_guess(path, MOUNT) is guess


def test_the_true_mount_is_no_guess() -> None:
    assert not is_guess("/repo/a.py", "/repo")


def test_test_files_by_pytests_naming() -> None:
    assert [is_test_file(p) for p in ("test_a.py", "x/a_test.py", "tests/a.py", "test_a.txt", "latest_a.py")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@given(st.text(max_size=80))
def test_any_text_is_read(command: str) -> None:
    outside_paths(command, MOUNT)
    runs_pytest(command)
