"""What a command can't reach. Run as whoever runs the tests; test_ordinary_user.py runs this file again as another user."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

import harness
from harness.workspace import load_task


@pytest.fixture
def inside(opened):
    return opened({"a.py": "x = 1\n"})


def run(workspace, command, timeout_s=60):
    return workspace.run(command, timeout_s=timeout_s)


def test_commands_see_and_change_the_copy(inside):
    result = run(inside, "pwd; cat a.py; echo 'x = 2' > a.py; mkdir b; echo new > b/c.txt; echo warned >&2")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "/srv/project\nx = 1\n", "warned\n")
    assert (inside.root / "a.py").read_text() == "x = 2\n"
    assert (inside.root / "b" / "c.txt").read_text() == "new\n"


def test_commands_can_change_what_the_harness_writes_meanwhile(inside):
    run(inside, "true")
    (inside.root / "new").mkdir()
    (inside.root / "new" / "f.txt").write_text("one\n")
    assert run(inside, "echo two >> new/f.txt && touch new/g").exit_code == 0
    assert (inside.root / "new" / "f.txt").read_text() == "one\ntwo\n"


def test_python_and_pytest_work(inside):
    (inside.root / "test_a.py").write_text(
        "from a import x\n\ndef test_x(tmp_path):\n    assert x == 1 and tmp_path.is_dir()\n"
    )
    for command in ("pytest -q", "python -m pytest -q", "python3 -m pytest -q"):
        result = run(inside, command)
        assert result.exit_code == 0, result
        assert "1 passed" in result.stdout


def test_no_byte_code_is_left_in_the_copy(inside):
    run(inside, "python -c 'import a'")
    assert sorted(p.name for p in inside.root.iterdir()) == ["a.py"]


@pytest.mark.parametrize(
    "place", ["~", "/", "/usr", "/etc", "/opt/venv/bin", "/home", "/srv", "/dev", "/var", "/proc/sys/kernel"]
)
def test_writing_outside_the_copy_fails(inside, place):
    result = run(inside, f"touch {place}/written")
    assert result.exit_code != 0
    assert result.stderr


def test_deleting_everything_deletes_the_copy_only(inside, tmp_path):
    (tmp_path / "kept").write_text("kept")
    run(inside, "rm -rf --no-preserve-root / 2>/dev/null")
    assert (tmp_path / "kept").read_text() == "kept"
    assert not (inside.root / "a.py").exists()
    assert Path("/usr/bin").is_dir()


def test_opening_a_connection_fails(inside):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        result = run(inside, f'python -c "{code}"')
    assert result.exit_code == 1
    assert "ConnectionRefusedError" in result.stderr
    assert run(inside, "python -c \"import socket; socket.create_connection(('192.0.2.1', 80), 2)\"").exit_code == 1


def test_the_places_that_models_guess_do_not_exist(inside):
    result = run(inside, "ls -d /repo /app /workspace /work /testbed")
    assert result.stdout == ""


def test_the_host_is_not_visible(inside, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    here = Path(harness.__file__).resolve().parent
    for path in (secret, tmp_path, here, here.parent, inside.root):
        assert run(inside, f"ls -d {path}").exit_code != 0, path
    assert run(inside, "python -c 'import harness'").exit_code == 1


def test_the_environment_is_not_handed_on(inside, monkeypatch):
    monkeypatch.setenv("CALLEDSHOT_SECRET", "secret-value")
    assert "secret-value" not in run(inside, "env; cat /proc/*/environ").stdout


def test_hidden_tests_and_references_can_not_be_found(opened):
    task = load_task("cart")
    names = {p.name for folder in (task.hidden, task.reference.parent) for p in folder.rglob("*") if p.is_file()}
    inside = opened({"cart.py": (task.repo / "cart.py").read_text()})
    by_name = run(
        inside, "find / \\( -name '*hidden*' -o -name test.sh -o -name solve.sh -o -name task.toml \\) 2>/dev/null", 60
    )
    found = {Path(line).name for line in by_name.stdout.splitlines() if not line.startswith(("/proc", "/sys"))}
    assert not found & (names - {"cart.py"})
    assert "task.toml" not in found
    for look in (
        "ls -R .. /srv",
        "ls /proc/1/cwd /proc/1/root /proc/1/fd",
        "cat ../../*/tests/*",
        f"cat {task.hidden}/*",
    ):
        assert "test_cart_hidden" not in run(inside, look).stdout, look
    for text in ("test_total_of_an_empty_list", "Harbor runs this"):
        assert run(inside, f"grep -rl '{text}' /srv /opt /home /tmp /etc").stdout == ""


def test_other_runs_and_the_original_repo_can_not_be_read(opened):
    other = opened({"other.txt": "of another run"}, name="other")
    inside = opened({"a.py": ""}, name="mine")
    run(other, "echo left in tmp > /tmp/left.txt")
    assert run(inside, "ls /tmp").stdout == ""
    assert run(inside, f"cat {other.root}/other.txt").exit_code == 1
    assert run(inside, f"ls {load_task('cart').repo}").exit_code != 0


def test_links_to_the_host_lead_nowhere(inside, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (inside.root / "link").symlink_to(tmp_path / "secret")
    assert run(inside, "cat link").exit_code == 1


def test_the_runner_can_not_be_read_or_ended(inside):
    assert run(inside, "cat /proc/1/environ; ls -l /proc/1/fd; cat /proc/1/mem").stdout == ""
    assert run(inside, "for s in INT TERM KILL STOP HUP; do kill -$s 1; done; echo alive").stdout == "alive\n"
    assert run(inside, "echo again").stdout == "again\n"


@pytest.mark.parametrize(
    "change",
    [
        "prlimit --pid 1 --fsize=1000:1000 --nofile=100:100",
        "renice -n 10 -p 1",
        "renice -n 10 -u $(id -u)",
        "taskset -p 1 1",
        "chrt --idle -p 0 1",
        "ionice -c 3 -p 1",
    ],
)
def test_what_a_command_does_to_the_runner_ends_with_it(inside, change):
    look = "ulimit -Ha; nice; taskset -p $$ | cut -d: -f2; chrt -p $$ | cut -d: -f2; ionice -p $$; head -c 2000 /dev/zero | wc -c"
    before = run(inside, look).stdout
    changed = run(inside, f"echo kept > /tmp/kept; echo kept > kept; {change}")
    assert changed.exit_code == 0, changed
    assert run(inside, look).stdout == before
    assert run(inside, "cat /tmp/kept kept").stdout == "kept\nkept\n"


def test_a_command_meets_the_runner_and_itself_only(inside):
    run(inside, "sleep 100 & true")
    assert run(inside, "set -- /proc/[0-9]*; echo $#").stdout == "2\n"


def test_commands_run_without_any_right(inside):
    assert run(inside, "grep CapEff /proc/self/status").stdout.split() == ["CapEff:", "0000000000000000"]
    assert run(inside, "grep NoNewPrivs /proc/self/status").stdout.split() == ["NoNewPrivs:", "1"]
    assert run(inside, "id -u").stdout.strip() != "0"
    assert run(inside, "mount -o remount,rw /usr; touch /usr/written").exit_code != 0


def test_no_user_namespace_can_be_made(inside):
    assert run(inside, "unshare --user --map-root-user true").exit_code != 0
    code = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.unshare(0x10000000), libc.unshare(0), os.waitpid(os.fork() or os._exit(3), 0)[1] >> 8)\n"
        "import threading; t = threading.Thread(target=print, args=('threads work',)); t.start(); t.join()\n"
    )
    (inside.root / "code.py").write_text(code)
    assert run(inside, "python code.py").stdout == "-1 0 3\nthreads work\n"


def test_scratch_lasts_for_the_run_only(tmp_path):
    from harness.settings import SandboxSettings
    from harness.workspace import open_workspace
    from harness.workspace.copy import copy_of

    repo = tmp_path / "repo"
    repo.mkdir()
    copy = copy_of(repo, tmp_path / "run")
    with open_workspace(copy, SandboxSettings()) as workspace:
        run(workspace, "echo kept > /tmp/note-of-this-run")
        assert run(workspace, "cat /tmp/note-of-this-run").stdout == "kept\n"
        assert not Path(tempfile.gettempdir(), "note-of-this-run").exists()
    assert not copy.scratch.exists()
    assert copy.root.is_dir()
