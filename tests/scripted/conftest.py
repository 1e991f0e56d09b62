"""Doubles and requests for the tests of this room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from harness.serving.running import RunningServer
from harness.serving.scripted import open_scripted
from harness.settings import ServerSettings

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Tool {name}.",
            "parameters": {
                "type": "object",
                "properties": {p: {"type": "string"} for p in arguments},
                "required": arguments,
            },
        },
    }
    for name, arguments in (
        ("list_files", []),
        ("read_file", ["path"]),
        ("write_file", ["path", "content"]),
        ("edit_file", ["path", "old", "new"]),
        ("bash", ["command"]),
    )
]


class Double:
    """A running double and a plain HTTP client to it."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.base_url, timeout=20, trust_env=False)

    def post(self, messages: list[dict[str, Any]], **more: Any) -> httpx.Response:
        return self.http.post("/v1/chat/completions", json={"messages": messages, "tools": TOOLS, "seed": 1, **more})

    def ask(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """The completion; the answer has to be one."""
        response = self.post(messages, **more)
        assert response.status_code == 200, response.text
        return response.json()

    def log(self) -> str:
        assert self.server.log is not None
        return self.server.log.read_text(encoding="utf-8")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def tool(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[..., Double]]:
    """Opens a double on a scenario given as a document (or by name), ended with the test."""
    with ExitStack() as stack:

        def start(scenario: dict[str, Any] | str, n_ctx: int = 4096, **settings: Any) -> Double:
            seed = settings.pop("run_seed", None)
            if isinstance(scenario, dict):
                text = yaml.safe_dump(scenario, sort_keys=False)
                path = tmp_path / f"{hashlib.sha256(text.encode()).hexdigest()[:8]}.yaml"
                path.write_text(text, encoding="utf-8")
                scenario = str(path)
            run_dir = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
            run_dir.mkdir()
            asked = ServerSettings(kind="scripted", n_ctx=n_ctx, scenario=scenario, **settings)
            double = Double(stack.enter_context(open_scripted(asked, run_dir, seed=seed)))
            stack.callback(double.http.close)
            return double

        yield start
