"""One server process: started with its words going to a log, waited for, ended for certain.

The process leads its own process group (Ctrl-C at the terminal does not reach it; the harness ends it) and holds the
pipe that harness.serving.tether watches.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

TERM_WAIT_S = 5.0
LOG_TAIL_BYTES = 65536
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX = re.compile(r"^(?:\d+\.\d\d\.\d{3}\.\d{3} )?([IWED]) ")
_WRONG = re.compile(r"error|failed|couldn't|can't|cannot|unable|invalid|unknown|exiting", re.I)


class ServerProcess:
    """Starts `argv` at once; `stop` ends the whole process group and may be called again."""

    def __init__(self, argv: list[str], log: Path) -> None:
        self.log = log
        self._stopped = False
        with log.open("wb") as out:
            self._popen = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def exit_code(self) -> int | None:
        """None while it runs; a signal's number negative."""
        if self._popen.returncode is not None or not hasattr(os, "waitid"):
            return self._popen.poll()
        # Only looked at, not reaped: until `stop` its number stays its own, so that the group can be ended safely.
        seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if seen is None:
            return None
        return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for whatever of the group is still there when the leader ends or TERM_WAIT_S is over."""
        if self._stopped:
            return
        self._stopped = True
        try:
            self._signal(signal.SIGTERM)
            end = time.monotonic() + TERM_WAIT_S
            while self.exit_code() is None and time.monotonic() < end:
                time.sleep(0.005)
        finally:
            self._signal(signal.SIGKILL)
            self._popen.wait()
            if self._popen.stdin is not None:
                self._popen.stdin.close()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; macOS says so of a group of zombies
            os.killpg(self.pid, number)

    def log_text(self) -> str:
        """The end of the log, without colours."""
        with self.log.open("rb") as f:
            f.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
            return _ANSI.sub("", f.read().decode("utf-8", "replace"))

    def last_words(self, lines: int = 3) -> str:
        """The log's last lines that say what went wrong (else simply its last ones), as one line."""
        said = [line.strip() for line in self.log_text().splitlines() if line.strip()]
        errors = [line for line in said if (m := _PREFIX.match(line)) and m[1] == "E"]
        errors = errors or [line for line in said if _WRONG.search(line)] or said
        return " | ".join(dict.fromkeys(_PREFIX.sub("", line) for line in errors[-lines:])) or "it said nothing"
