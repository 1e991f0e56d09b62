"""A server that is already there, at a URL: llama-server, or any OpenAI-compatible server with what it can't tell left
None.

Nothing is started or ended, but the slot is emptied before the run where the server allows it, so that a run starts
cold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from harness.serving.client import ChatClient
from harness.serving.errors import ServingError
from harness.serving.local import check_window, told_build, window
from harness.serving.running import RunningServer
from harness.settings import ServerSettings

LOADING, NOT_ALLOWED = 503, (401, 403)


class Named(Protocol):
    @property
    def name(self) -> str: ...


@contextmanager
def open_attached(settings: ServerSettings, model: Named | None) -> Iterator[RunningServer]:
    """The server at settings.url. Raises ServingError: unreachable, not ready, key refused, another window."""
    yield _attached(settings, model)


def _attached(settings: ServerSettings, model: Named | None) -> RunningServer:
    assert settings.url is not None
    with ChatClient(settings.url, api_key=settings.api_key) as client:
        _wait(client, settings)
        props = client.props()
        listed = client.models()
        n_ctx = window(props) or _listed_window(listed)
        if n_ctx is not None:
            check_window(settings.n_ctx, n_ctx)
        return RunningServer(
            kind=settings.kind,
            base_url=client.base_url,
            build=told_build(props),
            n_ctx=n_ctx,
            props=props,
            cold=props is not None and client.erase(0),
            api_key=settings.api_key,
            request_timeout_s=settings.request_timeout_s,
            request_extra=_extra(props, listed, model),
        )


def told_by(settings: ServerSettings) -> str | None:
    """The build the server at the URL tells, None when it tells none. Raises ServingError when nothing answers."""
    assert settings.url is not None
    with ChatClient(settings.url, api_key=settings.api_key) as client:
        _wait(client, settings)
        return told_build(client.props())


def _wait(client: ChatClient, settings: ServerSettings) -> None:
    end = time.monotonic() + settings.start_timeout_s
    while (status := client.status("/health")) == LOADING and time.monotonic() < end:
        time.sleep(0.5)
    if status is None:
        raise ServingError(f"server.url: nothing answers at {client.base_url}; start the server, or mend the address")
    if status == LOADING:
        raise ServingError(
            f"server.url: {client.base_url} still loads its model after {settings.start_timeout_s:g} s "
            "(server.start_timeout_s)"
        )
    refused = {client.status("/props"), client.status("/v1/models")} & set(NOT_ALLOWED)
    if refused:
        raise ServingError(f"server.api_key: {client.base_url} refuses it (HTTP {refused.pop()}); set the right key")


def _listed_window(listed: list[dict[str, Any]] | None) -> int | None:
    """vLLM tells its window in its list of models."""
    lengths = {m["max_model_len"] for m in listed or [] if isinstance(m.get("max_model_len"), int)}
    return lengths.pop() if len(lengths) == 1 else None


def _extra(props: dict[str, Any] | None, listed: list[dict[str, Any]] | None, model: Named | None) -> dict[str, Any]:
    if window(props) is not None:
        # With several slots the agent stays on the one that was emptied.
        slots = (props or {}).get("total_slots")
        return {"id_slot": 0} if isinstance(slots, int) and slots > 1 else {}
    names = [m["id"] for m in listed or [] if isinstance(m.get("id"), str)]
    if model is not None and (model.name in names or len(names) != 1):
        return {"model": model.name}
    if len(names) == 1:
        return {"model": names[0]}
    raise ServingError(f"model: the server offers {', '.join(names) or 'no list of models'}; name the one to use")
