"""How many threads a model server gets when nobody says: the physical cores this process may use.

Spinning threads on the second half of a hyper-threaded core slow llama.cpp down, and more threads than cores do so
badly.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def physical_cores() -> int:
    """Physical cores where Linux tells them, else half of the logical ones; never more than this process may run on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        cores = count_cores(CPUINFO.read_text())
    except OSError:
        cores = None
    return max(1, min(usable, cores or (usable + 1) // 2))


def count_cores(cpuinfo: str) -> int | None:
    """Distinct (physical id, core id) pairs of a /proc/cpuinfo text; None when it does not tell them."""
    pairs = {
        (physical[1], core[1])
        for block in cpuinfo.split("\n\n")
        if (physical := re.search(r"^physical id\s*: (\d+)", block, re.M))
        and (core := re.search(r"^core id\s*: (\d+)", block, re.M))
    }
    return len(pairs) or None
