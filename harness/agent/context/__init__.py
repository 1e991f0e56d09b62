"""Context policies by name."""

from __future__ import annotations

from harness.agent.context.base import ContextChange, ContextPolicy, ContextState, When
from harness.agent.context.published import Published
from harness.settings import ContextSettings, SettingsError


class NoPolicy:
    """Nothing is ever cleared."""

    name = "none"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        return None


def context_policy(settings: ContextSettings) -> ContextPolicy:
    """The policy that the settings name; raises SettingsError for an unknown one."""
    match settings.policy:
        case "none":
            return NoPolicy()
        case "published":
            return Published(trigger=0.5 if settings.trigger is None else settings.trigger, keep=settings.keep)
    raise SettingsError(f"context.policy: {settings.policy!r} is not one of none, published")
