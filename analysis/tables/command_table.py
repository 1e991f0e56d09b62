"""commands: one row per bash command of the model, judged, and run or not."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis.tables.columns import COMMAND
from analysis.tables.frame import frame
from analysis.tables.records import Record, Source, all_problems, load
from harness.record.commands import is_guess, outside_paths, runs_pytest
from harness.record.summary import mount_of


def commands(source: Source) -> pd.DataFrame:
    """The command table, in the order of the approvals."""
    records = load(source)
    rows = [row for record in records.runs for row in _rows(record)]
    return frame(rows, COMMAND, all_problems(records))


def _rows(record: Record) -> list[dict[str, Any]]:
    mount = mount_of(record.manifest, record.events)
    executed = {
        (e.get("step"), e.get("call")): e
        for e in record.events
        if e["event"] == "command" and e.get("purpose") == "tool"
    }
    rows = []
    for event in (e for e in record.events if e["event"] == "approval"):
        run = executed.get((event.get("step"), event.get("call")))
        outside = outside_paths(event["command"], mount)
        rows.append(
            record.arm
            | {
                "step": event.get("step"),
                "command": event["command"],
                "rule_version": event.get("rule"),
                "verdict": event.get("verdict"),
                "reason": event.get("reason"),
                "answer": event.get("answer"),
                "answered_by": event.get("answered_by"),
                "executed": run is not None,
                "outside": bool(outside),
                "guess": any(is_guess(w, mount) for w in outside),
                "runs_tests": runs_pytest(event["command"]),
            }
            | {k: (run or {}).get(k) for k in ("exit_code", "timed_out", "ms", "output_chars")}
            | {f"advice_{k}": (event.get("advice") or {}).get(k) for k in ("choice", "probability", "seconds")}
        )
    return rows
