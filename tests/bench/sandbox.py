"""What a command costs: a plain subprocess, the persistent sandbox, one of its own: ``python -m tests.bench.sandbox``

The three are taken in turn, so that other work on the machine weighs on all of them alike.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from harness.settings import SandboxSettings
from harness.workspace import open_workspace
from harness.workspace.copy import Copy

PLAIN = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def place(folder: str, name: str) -> Copy:
    root, scratch = Path(folder, name, "project"), Path(folder, name, "tmp")
    root.mkdir(parents=True)
    scratch.mkdir()
    for number in range(20):
        (root / f"file{number}.py").write_text("x = 1\n" * 50)
    return Copy(root, scratch)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, open_workspace(place(folder, "kept"), SandboxSettings()) as kept:

        def fresh(command: str) -> None:
            kept.close()
            kept.run(command, timeout_s=30)

        for command in ("true", "python -c pass"):
            ways = {
                "plain": lambda c=command: subprocess.run(
                    ["bash", "-c", c], env=PLAIN, capture_output=True, stdin=subprocess.DEVNULL, check=True
                ),
                "persistent": lambda c=command: kept.run(c, timeout_s=30),
                "own sandbox": lambda c=command: fresh(c),
            }
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, call in ways.items():
                    if way == "persistent":
                        kept.run("true", timeout_s=30)  # started by now, whatever came before
                    times[way].append(timed(call))
            base = median(times["plain"])
            for way, ms in times.items():
                middle, nine = median(ms), quantiles(ms, n=10)[-1]
                print(
                    f"{command:16} {way:12} median {middle:6.2f} ms   90 % {nine:6.2f} ms   over plain {middle - base:+.2f} ms"
                )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=100, help="commands of each kind and way")
    main(options.parse_args().rounds)
