"""The process around a server: its ties, its end, its last words, its memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.serving.memory import PeakMemory
from harness.serving.process import ServerProcess
from harness.serving.threads import count_cores, physical_cores

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
GROUP_OF_TWO = "import subprocess, sys; p = subprocess.Popen(['sleep', '30']); print(p.pid, flush=True); p.wait()"


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(happened: object, seconds: float = 20) -> bool:
    assert callable(happened)
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(happened())


def log_says(process: ServerProcess, text: str) -> bool:
    return wait_until(lambda: text in process.log_text())


@LINUX
def test_stop_ends_the_whole_group_even_when_it_will_not_hear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.serving.process.TERM_WAIT_S", 0.2)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + GROUP_OF_TWO.replace(
        "import subprocess, sys;", "import subprocess;"
    )
    process = ServerProcess([sys.executable, "-c", deaf], tmp_path / "log")
    assert log_says(process, "\n")
    child = int(process.log_text())
    process.stop()
    process.stop()
    assert process.exit_code() == -signal.SIGKILL
    assert wait_until(lambda: gone(child))


@LINUX
def test_the_pipe_alone_ties_a_program(tmp_path: Path) -> None:
    """As where there is no death signal: the keeper sees the pipe close and takes its program with it."""
    code = f"import sys; from harness.serving.tether import keep; keep([sys.executable, '-c', {GROUP_OF_TWO!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdin is not None
        grandchild = int(keeper.stdout.readline())
        assert not gone(grandchild)
        keeper.stdin.close()
        assert wait_until(lambda: gone(grandchild))


@LINUX
def test_what_a_server_leaves_behind_ends_too(tmp_path: Path) -> None:
    orphan = GROUP_OF_TWO.replace("p.wait()", "sys.exit(3)")
    process = ServerProcess([sys.executable, "-c", orphan], tmp_path / "log")
    assert wait_until(lambda: process.exit_code() is not None)
    assert process.exit_code() == 3
    child = int(process.log_text())
    assert not gone(child)
    process.stop()
    assert wait_until(lambda: gone(child))
    assert process.exit_code() == 3


def test_a_keeper_passes_on_the_exit_code() -> None:
    code = "import sys; from harness.serving.tether import keep; sys.exit(keep([sys.executable, '-c', 'exit(7)']))"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True) as keeper:
        assert keeper.wait(20) == 7


def test_a_program_that_can_not_be_run_says_so(tmp_path: Path) -> None:
    program = tmp_path / "text"
    program.write_text("no program")
    argv = [sys.executable, "-m", "harness.serving.tether", str(os.getpid()), str(program)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr.startswith(f"{program}: can't be run (")


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("", "it said nothing"),
        ("one\ntwo\n\nthree\nfour\n", "two | three | four"),
        ("0.00.001.000 I fine\n0.00.002.000 E srv  load: bad\n0.00.003.000 I bye\n", "srv  load: bad"),
        ("\x1b[34m0.00.001.000\x1b[0m \x1b[31mE gone wrong\x1b[0m\nI later\n", "gone wrong"),
        ("loading\nerror: invalid argument: --x\nusage\n", "error: invalid argument: --x"),
    ],
)
def test_last_words_are_the_ones_that_matter(tmp_path: Path, said: str, heard: str) -> None:
    process = ServerProcess([sys.executable, "-c", f"print({said!r}, end='')"], tmp_path / "log")
    assert wait_until(lambda: process.exit_code() is not None)
    assert process.last_words() == heard
    process.stop()


@LINUX
def test_memory_is_the_peak_of_the_whole_tree() -> None:
    held = "x = b'x' * 60_000_000; del x; print('ready', flush=True); import time; time.sleep(30)"
    code = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {held!r}]); p.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        memory = PeakMemory(parent.pid)
        peak = memory.sample()["resident_bytes"]
        assert peak is not None
        assert 60_000_000 < peak < 200_000_000
        os.killpg(parent.pid, signal.SIGKILL)
    assert memory.sample()["resident_bytes"] == peak
    assert PeakMemory(None).sample() == {"resident_bytes": None, "gpu_bytes": None}


def test_gpu_bytes_are_those_of_our_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{os.getpid()}, 300'\necho '1, 5000'\necho '{os.getpid()}, [N/A]'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert PeakMemory(os.getpid()).sample()["gpu_bytes"] == 300 * 2**20


def test_cores_are_counted_once_however_many_threads_they_have() -> None:
    block = "processor\t: {}\nphysical id\t: {}\nsiblings\t: 4\ncore id\t\t: {}\n"
    assert count_cores("\n".join(block.format(i, 0, i % 2) for i in range(4))) == 2
    assert count_cores("\n".join(block.format(i, i % 2, 0) for i in range(4))) == 2
    assert count_cores("processor\t: 0\nBogoMIPS\t: 50\n") is None
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
