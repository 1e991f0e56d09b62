"""How fast and how lean the log parser is: ``python -m tests.bench.server_log`` from the root of the repository.

For every log format a file is written and read three ways: line by line without parsing, by this package's stream,
and by kvprof 0.2.0 (a parser of the newest format on the Python index) where an interpreter has it: name one with
``--kvprof PYTHON``, so that it need not be installed here. ``--memory MB`` adds the peak memory of `calledshot log parse`
on one large file. Processor time, best of ``--repeat`` runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

from analysis.server_log import stream
from tests.server_log.log_renderer import FORMATS, Format, Spec

ABLE = ("D b9230", "D b9230 trace", "E", "E trace")
"""Formats kvprof reads at all."""
KVPROF = """
import sys, time
from kvprof.backends.llamacpp.serverlog import parse_server_log
best = 1e9
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    tasks = parse_server_log(sys.argv[1])["tasks"]
    best = min(best, time.process_time() - start)
print(best, len(tasks))
"""
READ = "import sys; from harness.cli.main import app; app(['log', 'parse', *sys.argv[1:]])"
BLOCK_MB = 5


def write(path: Path, forms: Sequence[Format], megabytes: float, *, slots: int = 1) -> None:
    """A log of one request after the other; of several formats, a few megabytes of each in turn."""
    size, task = 0.0, 0
    with path.open("w", newline="\n") as file:
        for form in cycle(forms):
            most = min(size + BLOCK_MB * 1e6, megabytes * 1e6) if len(forms) > 1 else megabytes * 1e6
            while size < most:
                spec = Spec(task % slots, task, task % 3000, 24, 52, 410.1, 2600.0)
                text = "\n".join(form.write(spec)) + "\n"
                file.write(text)
                size += len(text)
                task += 53
            if size >= megabytes * 1e6:
                return


def best(action: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def lines_only(path: Path) -> None:
    with path.open("rb") as file:
        for _ in file:
            pass


def parsed(path: Path) -> int:
    return sum(1 for _ in stream(path))


def kvprof(python: str, path: Path, repeat: int) -> float | None:
    """Seconds, or None where kvprof is missing or finds nothing."""
    done = subprocess.run([python, "-c", KVPROF, str(path), str(repeat)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    seconds, tasks = done.stdout.split()
    return float(seconds) if int(tasks) else None


def speeds(folder: Path, megabytes: float, repeat: int, python: str) -> None:
    print(f"MB per second of processor time, best of {repeat}, {megabytes:g} MB each")
    print(f"{'format':<18}{'lines':>10}{'parsed':>10}{'kvprof':>10}")
    for form in FORMATS:
        path = folder / "bench.log"
        write(path, [form], megabytes)
        size = path.stat().st_size / 1e6
        plain = size / best(lambda path=path: lines_only(path), repeat)
        ours = size / best(lambda path=path: parsed(path), repeat)
        other = kvprof(python, path, repeat) if form.name in ABLE else None
        theirs = f"{size / other:10.1f}   {ours * other / size:.1f} times as fast" if other else f"{'-':>10}"
        print(f"{form.name:<18}{plain:10.0f}{ours:10.1f}{theirs}", flush=True)


def memory(folder: Path, megabytes: float) -> None:
    path = folder / "large.log"
    write(path, FORMATS, megabytes, slots=4)
    for form in ("--json", "a table"):
        argv = [sys.executable, "-c", READ, str(path), *([form] if form == "--json" else [])]
        with (folder / "rows").open("w") as out:
            start = time.perf_counter()
            child = subprocess.Popen(argv, stdout=out)
            _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        rows = sum(1 for line in (folder / "rows").open() if " ok" in line or '"ok"' in line)
        print(
            f"{megabytes:g} MB of all formats in turn as {form}: exit {os.waitstatus_to_exitcode(status)}, {rows} rows,",
            end=" ",
        )
        print(f"{seconds:.0f} s, peak {used.ru_maxrss / 1024:.0f} MiB resident", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--mb", type=float, default=20, help="size of each log")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--kvprof", default=sys.executable, metavar="PYTHON", help="an interpreter that has kvprof")
    options.add_argument(
        "--memory",
        type=float,
        metavar="MB",
        help="also the peak memory of log parse on a log of this size",
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="server_log_bench_") as folder:
        if chosen.memory:
            memory(Path(folder), chosen.memory)
        speeds(Path(folder), chosen.mb, chosen.repeat, chosen.kvprof)


if __name__ == "__main__":
    main()
