"""A scripted server, the proxy in front of it, and single-file agents that run for real in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.agent.stop import Stop
from harness.external.program import check
from harness.external.proxy import Proxy
from harness.external.recorder import Recorder
from harness.external.run import OUTPUTS, run_external
from harness.external.watch import WatchedTree
from harness.external.wire import Upstream
from harness.paths import shipped
from harness.record.events import EventWriter, read_events
from harness.serving.running import RunningServer
from harness.serving.scripted.opening import open_scripted
from harness.settings import (
    AgentSettings,
    ExternalSettings,
    ModelSettings,
    RunSettings,
    SandboxSettings,
    ServerSettings,
    TaskSettings,
)
from harness.sweep.app import prepare
from harness.sweep.compose import Place
from harness.sweep.plan import RunPlan
from harness.workspace import open_workspace
from harness.workspace.copy import copy_of

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


@dataclass
class Ended:
    """A run that is over: how, what was recorded, what the program printed, and the copy."""

    stop: Stop
    rows: list[dict[str, Any]]
    out: str
    err: str
    root: Path

    @property
    def how(self) -> tuple[str, bool, int]:
        return self.stop.reason.value, self.stop.declared_done, self.stop.steps

    def kind(self, name: str) -> list[dict[str, Any]]:
        return [e for e in self.rows if e["event"] == name]


def run_alone(
    folder: Path,
    program: str,
    *,
    scenario: str = SAYS,
    command: str = "python {files}/agent.py {base_url}",
    time_limit_s: float = 60.0,
    max_steps: int = 30,
    n_ctx: int = 8192,
    external: dict[str, Any] | None = None,
    **sandbox: Any,
) -> Ended:
    (folder / "agent.py").write_text(program)
    played = folder / "scenario.yaml"
    played.write_text(scenario)
    (folder / "repo").mkdir()
    (folder / "repo" / "a.py").write_text("x = 1\n")
    told = ExternalSettings(**({"command": command, "files": ("agent.py",)} | (external or {})))
    settings = RunSettings(
        agent=AgentSettings("mine", max_steps=max_steps, time_limit_s=time_limit_s, external=told),
        server=ServerSettings(kind="scripted", n_ctx=n_ctx, scenario=str(played)),
        model=ModelSettings("some-model"),
        task=TaskSettings("own"),
        sandbox=SandboxSettings(**sandbox),
        seed=7,
    )
    check(settings, folder)
    copy = copy_of(folder / "repo", folder / "copy")
    with (
        open_workspace(copy, settings.sandbox) as workspace,
        open_scripted(settings.server, folder) as server,
        EventWriter(folder / "events.jsonl") as events,
    ):
        stop = run_external(
            settings, server, workspace, events, instruction="Do it.", n_ctx=n_ctx, study=folder, run_dir=folder
        )
    out, err = (folder / name for name in OUTPUTS)
    return Ended(stop, list(read_events(folder / "events.jsonl")), out.read_text(), err.read_text(), copy.root)


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
