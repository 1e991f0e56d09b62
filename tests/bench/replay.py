"""How fast the replay lab is: ``python -m tests.bench.replay`` from the root of the repository.

Simulated runs (analysis/replay/simulated.py) at three windows, every policy; steps per second of processor time on one core.
What all policies of a run share (its births) is worked out before and shown apart.
"""

from __future__ import annotations

import argparse
import sys
import time

from analysis.replay.material import material
from analysis.replay.policies import named_policy
from analysis.replay.replay import RecordedRun
from analysis.replay.simulated import simulated_events
from analysis.replay.sources import double_prompts

TARGET = 200
WINDOWS = ((4096, 30, 0.5), (8192, 30, 1.0), (32768, 100, 1.0))
POLICIES = (
    "none",
    "published",
    "published_before_send",
    "guarded:trigger=2300",
    "summarise:trigger=2300",
    "kv_shift:trigger=2300",
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Steps per second of the replay lab.")
    parser.add_argument("--runs", type=int, default=3, help="simulated runs per window")
    runs = parser.parse_args().runs
    slowest = float("inf")
    print(f"{'window':>7} {'policy':24} {'steps/s':>9}")
    for window, steps, scale in WINDOWS:
        recorded = []
        for seed in range(runs):
            found = material(str(seed), "scripted", simulated_events(seed, steps, scale=scale))
            recorded.append(RecordedRun(found, double_prompts(found)))
        start = time.process_time()
        for run in recorded:
            run.births()
        print(f"{window:7} {'(read and prepared)':24} {runs * steps / (time.process_time() - start):9.0f}")
        for name in POLICIES:
            reuse = 64 if name.startswith("kv_shift") else 0
            policy = named_policy(name, reuse)
            start = time.process_time()
            played = sum(run.through(policy, n_ctx=window, cache_reuse=reuse).turns for run in recorded)
            speed = played / (time.process_time() - start)
            slowest = min(slowest, speed)
            print(f"{window:7} {policy.policy.name:24} {speed:9.0f}")
    print(f"slowest {slowest:.0f} steps/s per policy; wanted {TARGET}")
    return 0 if slowest >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
