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
        with log.open("wb") as out:
            self._popen = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def exit_code(self) -> int | None:
        """None while it runs; a signal's number negative."""
        return self._popen.poll()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for what is still there after TERM_WAIT_S seconds."""
        try:
            self._signal(signal.SIGTERM)
            self._popen.wait(TERM_WAIT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._signal(signal.SIGKILL)
            self._popen.wait()
            if self._popen.stdin is not None:
                self._popen.stdin.close()

    def _signal(self, number: int) -> None:
        # Once the leader is reaped its number may be another's; while it is not, the group is surely ours.
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError):
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
