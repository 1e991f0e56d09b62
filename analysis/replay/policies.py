"""Policies by name for replays: `guarded`, or with settings of its own `guarded:floor=0.35,keep=1`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import yaml

from analysis.replay.errors import ReplayError
from harness.agent.context import POLICIES, context_policy
from harness.agent.context.base import ContextPolicy
from harness.paths import shipped
from harness.settings import ContextSettings, SettingsError


@dataclass(frozen=True)
class NamedPolicy:
    """name: as it was asked for. cap: characters of a result shown at once, None for no cap."""

    name: str
    policy: ContextPolicy
    cap: int | None


def named_policy(text: str, cache_reuse: int = 0) -> NamedPolicy:
    """A policy with the settings of conf/context and those of its own behind a colon.

    Raises ReplayError for an unknown name or setting, or a value that does not fit.
    """
    name, _, given = text.partition(":")
    if name not in POLICIES:
        raise ReplayError(f"--policy {text}: no policy named {name!r}; known are {', '.join(POLICIES)}")
    file = shipped("conf") / "context" / f"{name}.yaml"
    values: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings = ContextSettings(**(values | {"clear": tuple(values["clear"])}))
    known = {f.name for f in fields(ContextSettings)} - {"policy"}
    for part in _parts(given):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in known:
            raise ReplayError(f"--policy {text}: {part.strip()!r} is no setting; known are {', '.join(sorted(known))}")
        settings = replace(settings, **{key.strip(): _value(text, key.strip(), value, settings)})
    try:
        policy = context_policy(settings, cache_reuse=cache_reuse, probe={"moved_reuse": cache_reuse > 0})
    except SettingsError as e:
        mend = " (in a replay: --cache-reuse 64)" if name == "kv_shift" else ""
        raise ReplayError(f"--policy {text}: {e}{mend}") from e
    return NamedPolicy(text, policy, settings.result_cap)


def _parts(given: str) -> list[str]:
    """The settings, separated by commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for char in given:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    return [p for p in [*parts, part] if p.strip()]


def _value(text: str, key: str, raw: str, settings: ContextSettings) -> Any:
    try:
        value = yaml.safe_load(raw)
    except yaml.YAMLError:
        value = None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = number and float(value).is_integer()
    fits = {
        "trigger": value is None or (number and value > 0),
        "floor": number and 0 < value <= 1,
        "clear": isinstance(value, list),
        "ledger": isinstance(value, bool),
        "adapt": isinstance(value, bool),
        "result_cap": value is None or (whole and value >= 200),
    }.get(key, whole and value >= 0)
    if not fits:
        raise ReplayError(
            f"--policy {text}: {key}={raw.strip()} does not fit; it is {getattr(settings, key)!r} by default"
        )
    return tuple(map(str, value)) if key == "clear" else value
