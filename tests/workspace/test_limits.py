"""Limits on one command, and that nothing outlives it. Run again as another user by test_ordinary_user.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.workspace.sandbox import counts_processes

MIB = 2**20


def alive_with(marker: str) -> list[int]:
    """The processes of this machine whose command line holds `marker`."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker in line.read_bytes().decode(errors="replace") and int(line.parent.name) != os.getpid():
                found.append(int(line.parent.name))
        except OSError:
            continue
    return found


def gone(marker: str) -> bool:
    """Whether those processes end within some seconds."""
    for _ in range(200):
        if not alive_with(marker):
            return True
        time.sleep(0.05)
    return False


def test_exit_codes_are_the_shells(opened):
    workspace = opened()
    assert workspace.run("exit 7", timeout_s=60).exit_code == 7
    assert workspace.run("kill -TERM $$", timeout_s=60).exit_code == 128 + 15
    assert workspace.run("no-such-program", timeout_s=60).exit_code == 127
    assert workspace.run("cat", timeout_s=60).exit_code == 0, "stdin is empty"


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_a_timeout_ends_grandchildren_in_sessions_of_their_own(opened, kind):
    workspace = opened(kind=kind)
    marker = f"31{os.getpid()}.5"
    result = workspace.run(
        f"setsid nohup sleep {marker} >/dev/null 2>&1 & (sleep {marker} &) ; echo begun; sleep {marker}", timeout_s=1
    )
    assert result.timed_out
    assert (result.limit, result.exit_code, result.stdout) == ("time", None, "begun\n")
    assert gone(marker)


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_what_a_command_leaves_behind_ends_with_it(opened, kind):
    workspace = opened(kind=kind)
    marker = f"32{os.getpid()}.5"
    result = workspace.run(f"setsid sleep {marker} & sleep {marker} & echo done", timeout_s=60)
    assert (result.exit_code, result.stdout, result.timed_out) == (0, "done\n", False)
    assert gone(marker)


def test_a_command_leaves_no_state_but_files(opened):
    workspace = opened()
    workspace.run("export LEFT=1; cd /; umask 077; ulimit -n 10; touch /srv/project/f", timeout_s=60)
    result = workspace.run("echo ${LEFT:-none}; pwd; umask; ls", timeout_s=60)
    assert result.stdout == "none\n/srv/project\n0022\nf\n"


def test_an_output_flood_is_bounded_and_ended(opened):
    workspace = opened(output_bytes=64 * 1024)
    result = workspace.run("echo first; yes flood", timeout_s=60)
    assert (result.limit, result.exit_code, result.truncated) == ("output", None, True)
    assert result.stdout.startswith("first\nflood\n")
    assert "characters left out" in result.stdout
    assert len(result.stdout) < 64 * 1024
    assert result.output_chars > 8 * 64 * 1024


def test_long_output_keeps_its_head_and_its_tail(opened):
    workspace = opened(output_bytes=4096)
    result = workspace.run("seq 1 2000; echo the end", timeout_s=60)
    assert (result.exit_code, result.truncated, result.limit) == (0, True, None)
    assert result.stdout.startswith("1\n2\n")
    assert result.stdout.endswith("the end\n")
    printed = sum(len(str(n)) + 1 for n in range(1, 2001)) + len("the end\n")
    assert result.output_chars == printed
    head, note, tail = result.stdout.partition("\n[... ")
    left_out = int(tail.split()[0])
    assert len(head) + left_out + len(tail.split("...]\n", 1)[1]) == printed
    assert note


def test_output_that_is_not_utf8_is_shown(opened):
    result = opened().run("printf 'caf\\303\\251 \\377'", timeout_s=60)
    assert result.stdout == "café \ufffd"


def test_memory_of_one_process(opened):
    result = opened(memory_bytes=256 * MIB).run("python -c 'bytearray(2**29)'", timeout_s=60)
    assert (result.exit_code, result.limit) == (1, "memory")
    assert "MemoryError" in result.stderr


def test_memory_of_all_processes_together(opened):
    workspace = opened(memory_bytes=200 * MIB)
    code = "import time; b = bytearray(80 * 2**20); b[::4096] = b'x' * len(b[::4096]); time.sleep(55)"
    result = workspace.run(f'for i in 1 2 3 4; do python -c "{code}" & done; wait', timeout_s=60)
    assert (result.limit, result.exit_code, result.timed_out) == ("memory", None, False)


def test_memory_shared_by_processes(opened):
    """Shared memory is no process's own, and still somebody's."""
    code = (
        "import mmap, os, time\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        m = mmap.mmap(-1, 80 * 2**20)\n"
        "        for at in range(0, len(m), 4096):\n            m[at] = 1\n"
        "        time.sleep(55)\n        os._exit(0)\n"
        "time.sleep(55)\n"
    )
    result = opened({"share.py": code}, memory_bytes=200 * MIB).run("python share.py", timeout_s=60)
    assert (result.limit, result.exit_code) == ("memory", None)


def test_size_of_one_file(opened):
    workspace = opened(file_bytes=MIB)
    result = workspace.run("head -c 3000000 /dev/zero > large", timeout_s=60)
    assert (result.limit, result.exit_code) == ("file_size", 128 + signal.SIGXFSZ)
    assert (workspace.root / "large").stat().st_size == MIB


def test_disk_used_by_all_files(opened):
    workspace = opened(file_bytes=16 * MIB, disk_bytes=32 * MIB)
    fill = "for i in $(seq 1 200); do head -c 4000000 /dev/zero > f$i; sleep 0.05; done"
    result = workspace.run(fill, timeout_s=60)
    assert (result.limit, result.exit_code) == ("disk", None)


def test_a_quick_command_over_the_disk_limit_is_named_too(opened):
    workspace = opened(disk_bytes=MIB)
    assert workspace.run("head -c 3000000 /dev/zero > large", timeout_s=60).limit == "disk"


@pytest.mark.parametrize(
    "fill",
    [
        # files that no name leads to
        "import os, time\nfor i in range(10):\n    f = os.open('f', os.O_CREAT | os.O_WRONLY)\n    os.unlink('f')\n"
        "    os.write(f, b'x' * 2**22)\ntime.sleep(55)",
        # files of holes: small on disk, as large as they say once somebody copies them
        "import time\nfor i in range(100):\n    open(f'f{i}', 'wb').truncate(2**20)\ntime.sleep(55)",
        # names alone
        "import time\nfor i in range(9000):\n    open(f'f{i}', 'wb').close()\ntime.sleep(55)",
        # deeper than a path can say
        "import os, time\nfor i in range(60):\n    os.mkdir('d' * 100); os.chdir('d' * 100)\ntime.sleep(55)",
    ],
    ids=["nameless", "holes", "names", "deep"],
)
def test_disk_used_where_it_is_hard_to_see(opened, fill):
    workspace = opened({"fill.py": fill}, file_bytes=16 * MIB, disk_bytes=32 * MIB)
    result = workspace.run("python fill.py", timeout_s=60)
    assert (result.limit, result.exit_code) == ("disk", None)


def test_too_much_disk_can_be_given_back(opened):
    workspace = opened(
        {"fill.py": "import os\nfor i in range(60):\n    os.mkdir('d' * 100); os.chdir('d' * 100)\n"}, disk_bytes=MIB
    )
    assert workspace.run("head -c 3000000 /dev/zero > large; python fill.py", timeout_s=60).limit == "disk"
    slow = workspace.run("sleep 1.5; rm -r large d*; echo done", timeout_s=60)
    assert (slow.exit_code, slow.limit, slow.stdout) == (0, None, "done\n")
    workspace.run("head -c 3000000 /dev/zero > large", timeout_s=60)
    assert workspace.run("head -c 3000000 /dev/zero > more; sleep 55", timeout_s=60).limit == "disk"


def test_the_machine_keeps_some_disk(opened, monkeypatch):
    workspace = opened()
    assert workspace.run("sleep 1", timeout_s=60).limit is None
    monkeypatch.setattr("harness.workspace.disk.RESERVE_BYTES", 2**62)
    assert workspace.run("sleep 55", timeout_s=60).limit == "disk"


def test_number_of_processes(opened):
    if not counts_processes():
        pytest.skip("this machine can't limit processes")
    forks = (
        "import os, sys, time\nmade = 0\n"
        "for _ in range(40):\n"
        "    try:\n        pid = os.fork()\n"
        "    except OSError as e:\n        print(made, 'then', e)\n        sys.exit(1)\n"
        "    if pid == 0:\n        time.sleep(55)\n        os._exit(0)\n"
        "    made += 1\n"
    )
    result = opened({"forks.py": forks}, processes=20).run("python forks.py >&2", timeout_s=60)
    assert (result.exit_code, result.limit) == (1, "processes")
    assert int(result.stderr.split()[0]) <= 20


def test_two_runs_do_not_share_the_count_of_processes(opened):
    if not counts_processes():
        pytest.skip("this machine can't limit processes")
    one, two = (opened(name=name, processes=12) for name in ("one", "two"))
    six = "for i in 1 2 3 4 5 6; do sleep 1 & done; wait; echo fine"
    results = {}
    threads = [threading.Thread(target=lambda w=w: results.update({w: w.run(six, timeout_s=60)})) for w in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {r.stdout for r in results.values()} == {"fine\n"}


def test_a_workspace_outlives_the_thread_that_opened_it(opened):
    workspace = opened()
    thread = threading.Thread(target=lambda: workspace.run("true", timeout_s=60))
    thread.start()
    thread.join()
    session = workspace.session
    assert workspace.run("echo here", timeout_s=60).stdout == "here\n"
    assert workspace.session is session


def test_a_sandbox_that_died_is_started_again(opened):
    workspace = opened()
    workspace.run("echo x > kept; echo y > /tmp/kept", timeout_s=60)
    for pid in workspace.session.pids:
        os.kill(pid, signal.SIGKILL)
    assert workspace.run("cat kept /tmp/kept", timeout_s=60).stdout == "x\ny\n"


def test_a_command_whose_sandbox_dies_does_not_run_twice(opened):
    workspace = opened()
    workspace.run("true", timeout_s=60)
    results = []
    command = "echo once >> log; sleep 60"
    thread = threading.Thread(target=lambda: results.append(workspace.run(command, timeout_s=60)))
    thread.start()
    while not (workspace.root / "log").exists():
        time.sleep(0.02)
    os.kill(workspace.session.pids[1], signal.SIGKILL)
    thread.join()
    assert results[0].exit_code is None
    assert "the sandbox ended" in results[0].stderr
    assert workspace.run("cat log", timeout_s=60).stdout == "once\n"


def test_the_sandbox_dies_with_the_harness(tmp_path):
    marker = f"33{os.getpid()}.5"
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from harness.settings import SandboxSettings\nfrom harness.workspace import open_workspace\n"
        "from harness.workspace.copy import copy_of\n"
        f"repo = Path({str(tmp_path)!r}, 'repo')\nrepo.mkdir()\n"
        f"with open_workspace(copy_of(repo, Path({str(tmp_path)!r}, 'run')), SandboxSettings()) as w:\n"
        f"    w.run('setsid sleep {marker} & sleep {marker}', timeout_s=60)\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", script])
    try:
        for _ in range(400):
            if len([p for p in alive_with(f"sleep\0{marker}")]) >= 2:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the command did not begin")
    finally:
        harness.kill()
        harness.wait()
    assert gone(f"sleep\0{marker}")


def test_without_a_sandbox_the_warning_is_loud_and_limits_hold(opened):
    workspace = opened(kind="none", file_bytes=MIB)
    assert "your rights" in workspace.warning
    assert workspace.mount == str(workspace.root)
    assert workspace.run("pwd", timeout_s=60).stdout == f"{workspace.root}\n"
    assert workspace.run("head -c 3000000 /dev/zero > large", timeout_s=60).limit == "file_size"
    assert opened(name="boxed").warning is None
