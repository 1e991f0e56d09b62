"""A server that is there: what is known of it, and the one client to it.

What a server can't tell is None. `cold`: True when the slot held nothing when the run began, False when it may have
(recorded as warm), None when nobody can say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from harness.serving.client import ChatClient
from harness.serving.memory import PeakMemory


@dataclass
class RunningServer:
    """kind: embedded, launch, attach, scripted or tape. n_ctx: the slot's window in tokens, read back from the server.

    flags: how it was started. request_extra: what every request body must carry besides (an OpenAI-compatible server
    wants the model's name). open_transport: where the client's bytes go, None for the network.
    """

    kind: str
    base_url: str
    build: str | None = None
    n_ctx: int | None = None
    log: Path | None = None
    props: dict[str, Any] | None = None
    flags: list[str] = field(default_factory=list)
    pid: int | None = None
    cold: bool | None = None
    api_key: str | None = field(default=None, repr=False)
    request_timeout_s: float = 1800.0
    request_extra: dict[str, Any] = field(default_factory=dict)
    open_transport: Callable[[], httpx.BaseTransport] | None = None
    _client: ChatClient | None = field(default=None, init=False, repr=False)
    _peak: PeakMemory | None = field(default=None, init=False, repr=False)

    def client(self) -> ChatClient:
        """The client to this server, always the same one."""
        if self._client is None:
            self._client = ChatClient(
                self.base_url,
                n_ctx=self.n_ctx,
                api_key=self.api_key,
                timeout_s=self.request_timeout_s,
                transport=self.open_transport() if self.open_transport else None,
            )
        return self._client

    def erase(self) -> bool:
        """Empties the slot's cache, so that the next request starts cold; False where the server can't."""
        erased = self.client().erase(0)
        self.cold = True if erased else self.cold
        return erased

    def peak_memory(self) -> dict[str, int | None]:
        """Peak bytes of the server's processes so far: {"resident_bytes", "gpu_bytes"}, None where it can't be
        known."""
        if self._peak is None:
            self._peak = PeakMemory(self.pid)
        return self._peak.sample()

    def close(self) -> None:
        """Takes a last look at the memory and closes the client; the server itself is ended by who started it."""
        self.peak_memory()
        if self._client is not None:
            self._client.close()
