"""result.json: one flat row of the run table, derived from manifest, events and grading and nothing else.

`summarise` is a pure function over plain dicts; whoever doubts a result derives it again and compares. None = not known,
never 0 for want of data. The columns and their units are described in analysis/tables/columns.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.record.behaviour import command_columns, plan_open_items, repeat_columns, test_columns
from harness.record.costs import time_columns, token_columns
from harness.record.external import external_columns, is_external
from harness.record.grades import completion_columns, grade_columns
from harness.record.replies import clear_columns, end_columns, of_kind, reply_columns
from harness.record.slot import Event

# In the arm's label these say what a run is of, not which arm it belongs to, or are named first anyway.
NOT_IN_LABEL = (
    *("agent", "agent.name", "server.n_ctx", "seed", "task", "task.name", "task.path", "experiment"),
    *("server", "server.scenario", "server.tape", "server.url", "server.port", "server.threads"),
)


def summarise(manifest: dict[str, Any], events: Iterable[Event], grading: dict[str, Any] | None) -> dict[str, Any]:
    """The run row. grading: None for a run that was not graded; its columns are None then."""
    rows = list(events)
    grades = grade_columns(grading)
    row = {
        **identity_columns(manifest, rows),
        **end_columns(rows),
        **grades,
        **completion_columns(rows, grades),
        **reply_columns(rows),
        **clear_columns(rows),
        **token_columns(manifest, rows),
        **repeat_columns(rows),
        **command_columns(rows, mount_of(manifest, rows)),
        **test_columns(rows),
        **time_columns(rows, manifest.get("kind")),
        **_memory(rows),
        "plan_open_items": plan_open_items(rows),
    }
    return row | external_columns(row, rows, mount_of(manifest, rows)) if is_external(manifest) else row


def identity_columns(manifest: dict[str, Any], events: list[Event]) -> dict[str, Any]:
    """Which run it is: id, experiment, kind, and the factors of its arm."""
    settings = manifest.get("settings") or {}
    start = next(iter(of_kind(events, "start")), {})
    agent = _at(settings, "agent", "name")
    n_ctx = start.get("n_ctx") or _at(settings, "server", "n_ctx")
    return {
        "run_id": manifest.get("run_id"),
        "experiment": manifest.get("experiment"),
        "kind": manifest.get("kind"),
        "task": _at(manifest, "task", "name") or _at(settings, "task", "name"),
        "agent": agent,
        "n_ctx": n_ctx,
        "rule_version": _at(settings, "approval", "rule"),
        "policy": _at(settings, "context", "policy"),
        "protocol": _at(settings, "protocol", "name"),
        "gate": _at(settings, "finish", "gate"),
        "model": _at(manifest, "model", "name") or _at(settings, "model", "name"),
        "seed": settings.get("seed"),
        "arm": arm_label(agent, n_ctx, manifest.get("cell")),
    }


def arm_label(agent: str | None, n_ctx: int | None, cell: Iterable[str] | None) -> str | None:
    """A short name of the arm: agent, window, and every other override of the cell; the same for all its runs."""
    if agent is None and n_ctx is None:
        return None
    return " ".join([*label_head(agent, n_ctx), *label_overrides(cell)])


def label_head(agent: str | None, n_ctx: int | None) -> list[str]:
    """What every label begins with: the agent, and the window as 4K, 8K, or a number that is no multiple of 1024."""
    window = None if n_ctx is None else f"{n_ctx // 1024}K" if n_ctx % 1024 == 0 else str(n_ctx)
    return [p for p in (agent, window) if p]


def label_overrides(cell: Iterable[str] | None) -> list[str]:
    """The other overrides of a cell that tell its arm, as key=value, sorted."""
    others = []
    for override in cell or ():
        key, _, value = str(override).lstrip("+~").partition("=")
        if key not in NOT_IN_LABEL and value:
            others.append(f"{key}={value}")
    return sorted(others)


def mount_of(manifest: dict[str, Any], events: list[Event]) -> str | None:
    """The copy's folder as the agent's commands saw it; None when the record doesn't say."""
    start = next(iter(of_kind(events, "start")), {})
    return start.get("mount") or _at(manifest, "sandbox", "mount")


def _memory(events: list[Event]) -> dict[str, Any]:
    found = of_kind(events, "resources")
    last = found[-1] if found else {}
    return {"peak_resident_bytes": last.get("resident_bytes"), "peak_gpu_bytes": last.get("gpu_bytes")}


def _at(node: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(node, dict):
            return None
        node = node.get(key)
    return node
