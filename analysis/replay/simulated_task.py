"""``python -m analysis.replay.simulated_task FOLDER``: the task that the simulated agent of the double plays on."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.serving.errors import ServingError
from harness.serving.scripted.simulation_task import make_simulation_task


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m analysis.replay.simulated_task FOLDER", file=sys.stderr)
        return 2
    try:
        folder = make_simulation_task(Path(argv[0]))
    except ServingError as e:
        print(f"calledshot: {e}", file=sys.stderr)
        return 2
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
