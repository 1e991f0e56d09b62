"""`when`: the conditions under which a step of a scenario may be played. All that are given must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.serving.scripted.request import PLACEHOLDER, RequestView, text


class ConditionError(ValueError):
    """A condition that is not written as docs/scenarios.md says."""


def _cleared(view: RequestView, path: Any) -> bool:
    if isinstance(path, bool):
        return path == any(text(m).startswith(PLACEHOLDER) for m in view.messages)
    return view.cleared(str(path))


def _prompt_over(view: RequestView, size: Any) -> bool:
    return view.prompt_tokens > (size * view.n_ctx if size <= 1 else size)


_CHECKS: dict[str, tuple[type | tuple[type, ...], Callable[[RequestView, Any], bool]]] = {
    "last_tool_contains": (str, lambda view, part: part in view.last("tool")),
    "last_user_contains": (str, lambda view, part: part in view.last("user")),
    "last_message_contains": (str, lambda view, part: bool(view.messages) and part in text(view.messages[-1])),
    "contains": (str, lambda view, part: any(part in text(m) for m in view.messages)),
    "cleared": ((str, bool), _cleared),
    "has_read": (str, lambda view, path: path in view.read_before),
    "prompt_over": ((int, float), _prompt_over),
    "request": (int, lambda view, number: view.number == number),
    "from_request": (int, lambda view, number: view.number >= number),
    "offers_tool": (str, lambda view, name: name in view.tools),
}


@dataclass(frozen=True)
class Condition:
    """checks: (name, value) pairs; unless: conditions of which none may hold (`not` in the file)."""

    checks: tuple[tuple[str, Any], ...] = ()
    unless: tuple[Condition, ...] = ()

    @classmethod
    def read(cls, value: Any, where: str) -> Condition:
        """Builds a condition from YAML; raises ConditionError."""
        if not isinstance(value, dict) or not value:
            raise ConditionError(f"{where}: expected conditions, got {value!r}")
        checks: list[tuple[str, Any]] = []
        unless: list[Condition] = []
        for name, wanted in value.items():
            if name == "not":
                unless.append(cls.read(wanted, f"{where}.not"))
                continue
            if name not in _CHECKS:
                raise ConditionError(f"{where}: no such condition {name!r}; known: {', '.join([*_CHECKS, 'not'])}")
            kind = _CHECKS[name][0]
            if not isinstance(wanted, kind) or (isinstance(wanted, bool) and name != "cleared"):
                raise ConditionError(f"{where}.{name}: {wanted!r} is not what this condition takes")
            checks.append((name, wanted))
        return cls(tuple(checks), tuple(unless))

    @property
    def always(self) -> bool:
        return not self.checks and not self.unless

    def holds(self, view: RequestView) -> bool:
        return all(_CHECKS[name][1](view, value) for name, value in self.checks) and not any(
            condition.holds(view) for condition in self.unless
        )
