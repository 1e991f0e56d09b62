"""A scripted server, the proxy in front of it, and single-file agents that run for real in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.external.proxy import Proxy
from harness.external.recorder import Recorder
from harness.external.watch import WatchedTree
from harness.external.wire import Upstream
from harness.paths import shipped
from harness.serving.running import RunningServer
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.plan import RunPlan

SAYS = "about: says the same for ever\nsteps:\n- {say: All is well., times: null}\n"


class Events:
    """Numbered events in memory."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def emit(self, event: str, **fields: Any) -> None:
        self.rows.append({"i": len(self.rows), "event": event} | fields)

    def kind(self, name: str) -> list[dict[str, Any]]:
        return [e for e in self.rows if e["event"] == name]


@dataclass
class Proxied:
    """A server, and the port at which the proxy in front of it listens."""

    server: RunningServer
    port: int
    events: Events
    recorder: Recorder


@contextmanager
def proxied(server: RunningServer, root: Path, *, max_steps: int = 1000, timeout_s: float = 60.0) -> Iterator[Proxied]:
    root.mkdir(exist_ok=True)
    events = Events()
    recorder = Recorder(events, WatchedTree(root), {"instruction": "x"}, max_steps=max_steps, n_ctx=server.n_ctx)
    upstream = Upstream(server.base_url, server.api_key, timeout_s)
    with Proxy(upstream, recorder, None, timeout_s=timeout_s) as proxy:
        assert proxy.port is not None
        yield Proxied(server, proxy.port, events, recorder)


def planned(folder: Path, program: str, *overrides: str, scenario: str = SAYS, name: str = "agent") -> RunPlan:
    agent, played = folder / f"{name}.py", folder / f"{name}.yaml"
    agent.write_text(program)
    played.write_text(scenario)
    asked = [
        "server=scripted",
        f"server.scenario={played}",
        "task=cart",
        "agent=external/example",
        f"agent.external.files=[{agent}]",
        f"agent.external.command='python {{files}}/{agent.name} {{base_url}}'",
        "agent.time_limit_s=30",
        *overrides,
    ]
    (plan,) = prepare(Place(shipped("conf").parent, folder / "runs"), asked, False).plans
    return plan
