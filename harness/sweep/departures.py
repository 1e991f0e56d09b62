"""What a run's settings depart from: those that its agent version was published (or shipped) with.

Window, model, task, seed and the way to the server are the experiment's own factors and no departures; a reply limit is one.
"""

from __future__ import annotations

from typing import Any

from harness.settings import to_plain
from harness.sweep.compose import Place, cells, hydra_session
from harness.sweep.plan import RunPlan

COMPARED = ("agent", "protocol", "approval", "context", "finish")


def departures(plan: RunPlan) -> dict[str, list[Any]]:
    """Key -> [as the agent version has it, as used], for every setting that differs."""
    with hydra_session(Place(plan.study, plan.runs)) as hydra:
        preset = cells(hydra, [f"agent={plan.settings.agent.name}"], multirun=False)[0].settings
    as_preset, as_used = to_plain(preset), to_plain(plan.settings)
    found = {
        f"{section}.{key}": [value, as_used[section][key]]
        for section in COMPARED
        for key, value in as_preset[section].items()
        if value != as_used[section][key]
    }
    if as_used["server"]["max_tokens"] is not None:
        found["server.max_tokens"] = [None, as_used["server"]["max_tokens"]]
    return found
