"""When a policy that looks before sending acts, and how large a request it then promises."""

from __future__ import annotations

from harness.agent.context.base import ContextState


def limit(trigger: float | None, state: ContextState) -> int:
    """The largest prompt in tokens that is sent as it is.

    trigger: a fraction of the window (at most 1), a reserve in tokens that is kept free for the reply (above 1), or None:
    the reply limit as reserve, a quarter of the window where there is no reply limit.
    """
    if trigger is None:
        return max(1, state.n_ctx - (state.max_tokens or state.n_ctx // 4))
    if trigger <= 1:
        return int(trigger * state.n_ctx)
    return max(1, state.n_ctx - int(trigger))
