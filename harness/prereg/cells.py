"""The grid as the predictions see it: one cell per run that is to be made.

The caller (the sweep) composes the grid; a cell holds the settings that can change the result under their full keys, such
as `server.n_ctx`. Run tables name the same things by columns, such as `n_ctx`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

COLUMN_OF_SETTING = {
    "agent.name": "agent",
    "server.n_ctx": "n_ctx",
    "approval.rule": "rule_version",
    "context.policy": "policy",
    "protocol.name": "protocol",
    "finish.gate": "gate",
    "model.name": "model",
    "task.name": "task",
    "seed": "seed",
}


@dataclass(frozen=True)
class Cell:
    """One run of a grid. settings: flat, full key -> JSON value, of what can change the result (no paths, no ports)."""

    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        # As JSON would give it back, so that a cell from a file equals the cell it was written from.
        object.__setattr__(self, "settings", flatten(self.settings))

    def columns(self) -> dict[str, Any]:
        """The cell's values under the column names of the run table."""
        named = {COLUMN_OF_SETTING[key]: value for key, value in self.settings.items() if key in COLUMN_OF_SETTING}
        kind = self.settings.get("server.kind")
        if kind is not None:
            named["kind"] = kind if kind in ("scripted", "tape") else "real"
        return named

    def fits(self, settings: Mapping[str, Any]) -> bool:
        """True when a run's flat settings have every value of this cell."""
        return all(settings.get(key, _ABSENT) == value for key, value in self.settings.items())


_ABSENT = object()


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as flat ones: {"server": {"n_ctx": 4096}} -> {"server.n_ctx": 4096}."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def differing(cells: Iterable[Cell]) -> list[str]:
    """The keys in which the cells differ, in the order of the first cell."""
    listed = list(cells)
    if not listed:
        return []
    keys = dict.fromkeys(key for cell in listed for key in cell.settings)
    first = listed[0].settings
    return [k for k in keys if any(c.settings.get(k, _ABSENT) != first.get(k, _ABSENT) for c in listed)]


def describe(cell: Cell, keys: Iterable[str]) -> str:
    """A cell by the named keys, such as `agent=part3 n_ctx=4096 seed=1`."""
    return " ".join(f"{COLUMN_OF_SETTING.get(key, key)}={cell.settings.get(key)}" for key in keys) or "the only cell"
