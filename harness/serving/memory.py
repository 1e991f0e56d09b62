"""Peak memory of a server's processes, without a library and without a sampling thread.

Linux: the kernel keeps each process's highest resident size (VmHWM), so one look before the end is enough. Elsewhere
`ps` gives the resident size of the moment and the peak is the highest of the looks taken. GPU bytes come from
nvidia-smi, per process.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROC = Path("/proc")


class PeakMemory:
    """The highest values seen for a process and its descendants; `pid` None (somebody else's server) knows nothing."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._resident: int | None = None
        self._gpu: int | None = None

    def sample(self) -> dict[str, int | None]:
        """Looks now; returns the peaks in bytes. A process that has ended keeps what was seen before."""
        if self._pid is not None:
            pids = _family(self._pid)
            self._resident = _higher(self._resident, _resident(pids))
            self._gpu = _higher(self._gpu, _gpu(pids))
        return {"resident_bytes": self._resident, "gpu_bytes": self._gpu}


def _higher(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _family(pid: int) -> list[int]:
    parents = _parents_from_proc() if PROC.joinpath("self", "stat").exists() else _parents_from_ps()
    family = [pid]
    for member in family:
        family.extend(child for child, parent in parents.items() if parent == member)
    return family


def _parents_from_proc() -> dict[int, int]:
    parents = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:  # it ended meanwhile
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def _parents_from_ps() -> dict[int, int]:
    rows = (line.split() for line in _output(["ps", "-A", "-o", "pid=,ppid="]).splitlines())
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 2}


def _resident(pids: list[int]) -> int | None:
    sizes = [size for pid in pids if (size := _resident_of(pid)) is not None]
    return sum(sizes) if sizes else None


def _resident_of(pid: int) -> int | None:
    status = PROC / str(pid) / "status"
    if PROC.joinpath("self", "status").exists():
        try:
            lines = status.read_text().splitlines()
        except OSError:
            return None
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
    text = _output(["ps", "-o", "rss=", "-p", str(pid)]).strip()
    return int(text) * 1024 if text.isdigit() else None


def _gpu(pids: list[int]) -> int | None:
    if shutil.which("nvidia-smi") is None:
        return None
    text = _output(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"])
    used = [
        int(mebibytes) * 2**20
        for pid, _, mebibytes in (line.replace(" ", "").partition(",") for line in text.splitlines())
        if pid.isdigit() and int(pid) in pids and mebibytes.isdigit()
    ]
    return sum(used) if used else None


def _output(argv: list[str]) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
