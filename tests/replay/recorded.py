"""Genuine recorded runs, made here by the agent loop against the double: the ground of the replay tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from analysis.tables.records import Record, load
from harness.agent.protocol import protocol
from harness.agent.run import run_agent
from harness.agent.workspace import CommandResult, OutsideWorkspace
from harness.record.counting import count_requests
from harness.record.events import EventWriter, read_events
from harness.record.folder import write_json
from harness.serving.counting import TokenCounter
from harness.serving.scripted import filler, open_scripted
from harness.settings import (
    AgentSettings,
    ContextSettings,
    FinishSettings,
    ModelSettings,
    ProtocolSettings,
    RunSettings,
    ServerSettings,
    TaskSettings,
)

SIZES = (300, 700, 150, 500, 400, 900, 250, 600, 350, 450)
WINDOW, REPLY = 4096, 500


@dataclass(frozen=True)
class FolderWorkspace:
    """A plain folder with no commands in it; the runs made here only read and write files."""

    root: Path
    mount: str = "/work"

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        raise AssertionError(f"these runs have no bash: {command}")

    def resolve(self, path: str) -> Path:
        target = (self.root / path).resolve()
        if not target.is_relative_to(self.root.resolve()):
            raise OutsideWorkspace(path)
        return target

    def tree_change(self) -> None:
        return None


def settings(
    context: ContextSettings,
    *,
    n_ctx: int = WINDOW,
    max_tokens: int | None = REPLY,
    protocol: Literal["native", "text_json", "constrained"] = "native",
) -> RunSettings:
    tools = ("read_file", "write_file")
    agent = AgentSettings(
        "replayed", max_steps=30, tools=tools, guard=False, on_cut="drop", on_overflow="clear_and_retry"
    )
    server = ServerSettings("scripted", n_ctx, max_tokens, scenario="recorded.yaml")
    finish = FinishSettings("none")
    return RunSettings(
        agent,
        server,
        ModelSettings("double"),
        TaskSettings("t"),
        ProtocolSettings(protocol),
        context=context,
        finish=finish,
    )


def written(protocol: str, thought: str, call: dict[str, Any]) -> dict[str, Any]:
    """One reply as a model of that protocol writes it."""
    ((name, arguments),) = call.items()
    if protocol == "native":
        return {"think": thought, "calls": [call]}
    if protocol == "text_json":
        return {"say": f"{thought}\n```json\n{json.dumps({'name': name, 'arguments': arguments}, indent=2)}\n```"}
    return {"say": json.dumps({"thought": thought, "tool": name, "arguments": arguments}, indent=1)}


def scenario(folder: Path, protocol: str) -> Path:
    """Reads of files of different sizes, a few writes, thinking before each; then done."""
    steps: list[dict[str, Any]] = []
    for number, size in enumerate(SIZES):
        call = {"read_file": {"path": f"f{number}.txt"}}
        if number % 3 == 2:
            call = {"write_file": {"path": f"w{number}.txt", "content": filler.prose(size // 2, f"w{number}")}}
        steps.append(written(protocol, filler.prose(40 + 9 * number, f"t{number}"), call))
    last = {"say": "Done."}
    if protocol == "constrained":
        last = written(protocol, "Done.", {"finish": {"summary": "all of it"}})
    file = folder / "recorded.yaml"
    file.write_text(yaml.safe_dump({"steps": [*steps, last]}), encoding="utf-8")
    return file


def record(folder: Path, context: ContextSettings, **server: Any) -> Record:
    """Runs the agent once and returns its record."""
    made = settings(context, **server)
    work, run = folder / "work", folder / "runs" / context.policy
    work.mkdir(parents=True, exist_ok=True)
    run.mkdir(parents=True)
    for number, size in enumerate(SIZES):
        (work / f"f{number}.txt").write_text(filler.prose(size, f"f{number}"), encoding="utf-8")
    file = scenario(folder, made.protocol.name)
    played = ServerSettings("scripted", made.server.n_ctx, made.server.max_tokens, scenario=str(file))
    with open_scripted(played, run) as double, EventWriter(run / "events.jsonl") as sink:
        client = double.client()
        run_agent(
            made,
            client,
            FolderWorkspace(work),
            sink,
            instruction=filler.prose(120, "task"),
            n_ctx=made.server.n_ctx,
            count=TokenCounter(client),
        )
        events = list(read_events(run / "events.jsonl"))
        for row in count_requests(events, client.apply_template, client.tokenize, protocol(made.protocol.name).wire):
            sink.emit("count", **row)
    write_json(run / "manifest.json", {"run_id": context.policy, "kind": "scripted", "server": {"probe": {}}})
    write_json(run / "result.json", {"run_id": context.policy, "kind": "scripted"})
    return load(run).runs[0]
