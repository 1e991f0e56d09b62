"""Ties a server's process to the harness: however the harness ends, kill -9 included, the server ends too.

Two ties. The server's standard input is a pipe whose other end only the harness holds: the kernel closes it with the
harness, and a watching thread then ends the server. On Linux the kernel also kills the server when the thread that
started it ends (PR_SET_PDEATHSIG), which works even for a program that is not ours and for one busy in native code.

`python -m harness.serving.tether PROGRAM ARGS…` runs a program that is not ours under the tie: on Linux in its own
place, elsewhere beside a keeper that watches the pipe.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1


def hold(parent: int) -> None:
    """Ties the calling process, which leads its own process group, to the harness with the process id `parent`."""
    _die_with(parent)
    threading.Thread(target=_end_at_close, name="tether", daemon=True).start()


def keep(argv: list[str]) -> int:
    """Runs a program under the pipe's tie alone and returns its exit code (a signal's number negative)."""
    program = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_at_close, name="tether", daemon=True).start()
    return program.wait()


def _die_with(parent: int) -> bool:
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    tied = libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    if os.getppid() != parent:  # it ended before the tie was made
        os.kill(os.getpid(), signal.SIGKILL)
    return tied


def _end_at_close() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(argv: list[str]) -> int:
    parent, program = int(argv[0]), argv[1:]
    try:
        if _die_with(parent):
            os.execvp(program[0], program)
        return keep(program)
    except OSError as e:
        print(f"{program[0]}: can't be run ({e.strerror})", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
