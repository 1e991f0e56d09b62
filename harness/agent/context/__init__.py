"""Context policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.agent.context.base import ContextChange, ContextPolicy, ContextState, When
from harness.agent.context.clearing import KINDS, Clearing
from harness.agent.context.guarded import Guarded
from harness.agent.context.kv_shift import KvShift
from harness.agent.context.published import Published, PublishedBeforeSend
from harness.agent.context.summarise import Summarise
from harness.settings import ContextSettings, SettingsError

__all__ = ["POLICIES", "ContextChange", "ContextPolicy", "ContextState", "When", "check_context", "context_policy"]

POLICIES = ("none", "published", "published_before_send", "guarded", "summarise", "kv_shift")


class NoPolicy:
    """Nothing is ever cleared."""

    name = "none"

    def decide(self, when: When, state: ContextState) -> ContextChange | None:
        return None


def check_context(settings: ContextSettings, *, n_ctx: int, max_tokens: int | None, cache_reuse: int) -> None:
    """Raises SettingsError for context settings that no run can start with, whatever the server turns out to do."""
    context_policy(settings, cache_reuse=cache_reuse, probe={"moved_reuse": True})
    if settings.policy in ("none", "published"):
        return
    given, by = settings.trigger, "context.trigger"
    if given is None and settings.policy != "published_before_send":
        given, by = max_tokens, "server.max_tokens"
    # A fraction (at most 1) always leaves a limit; a reserve as large as the window would clear before every request.
    if given is not None and given >= n_ctx and (by == "server.max_tokens" or given > 1):
        raise SettingsError(
            f"{by}: a reserve of {given:g} tokens leaves nothing of the window of {n_ctx}; "
            "set context.trigger to a fraction of it, e.g. 0.75, or to a smaller reserve"
        )


def context_policy(
    settings: ContextSettings, *, cache_reuse: int = 0, probe: Mapping[str, Any] | None = None
) -> ContextPolicy:
    """The policy that the settings name.

    cache_reuse: the server's setting of that name. probe: what is known of the server; `kv_shift` needs its `moved_reuse`
    (harness.serving.moved_reuse) to be true.

    Raises:
        SettingsError: an unknown policy, settings that contradict each other, or kv_shift where the server can't shift.
    """
    unknown = [kind for kind in settings.clear if kind not in KINDS]
    if unknown:
        raise SettingsError(f"context.clear: no kind named {', '.join(unknown)}; known: {', '.join(KINDS)}")
    if settings.ledger and "results" not in settings.clear:
        raise SettingsError("context.ledger: needs results in context.clear, because whole steps leave with it")
    clearing = Clearing(settings.clear, settings.keep, settings.keep_thinking, settings.ledger)
    trigger, floor = settings.trigger, settings.floor
    half = 0.5 if trigger is None else trigger
    match settings.policy:
        case "none":
            return NoPolicy()
        case "published":
            if half > 1:
                raise SettingsError("context.trigger: published takes a fraction of the window, at most 1")
            return Published(half, settings.keep)
        case "published_before_send":
            return PublishedBeforeSend(half, settings.keep)
        case "guarded":
            return Guarded(trigger, floor, clearing, settings.clear_at_least, settings.adapt)
        case "summarise":
            fallback = Guarded(trigger, floor, clearing, settings.clear_at_least, settings.adapt)
            return Summarise(trigger, settings.summary_tokens, fallback, settings.keep)
        case "kv_shift":
            if cache_reuse <= 0:
                raise SettingsError(
                    "context.policy: kv_shift needs server.cache_reuse above 0, e.g. server.cache_reuse=64"
                )
            if not (probe or {}).get("moved_reuse"):
                raise SettingsError(
                    "context.policy: kv_shift needs a server whose probe saw moved cache reused; this one does not"
                )
            return KvShift(trigger, floor, settings.keep)
    raise SettingsError(f"context.policy: {settings.policy!r} is not one of {', '.join(POLICIES)}")
