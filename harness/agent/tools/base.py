"""What a tool is: a name, a description, a JSON schema of its arguments, and a function whose text goes to the model.

A tool's failure is text to the model, never a crash: `call` turns every exception into `error: …`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class ToolError(Exception):
    """A refusal or failure whose text the model should read."""


@dataclass(frozen=True)
class Tool:
    """parameters: JSON schema properties; every one of them is required unless named in `optional`.

    run receives the arguments as keyword arguments and returns the text for the model. bookkeeping: a tool that only keeps
    notes for the model (scratchpad, to-do list) and never touches the copy.
    """

    name: str
    description: str
    parameters: dict[str, dict[str, Any]]
    run: Callable[..., str]
    optional: frozenset[str] = frozenset()
    bookkeeping: bool = False

    def schema(self) -> dict[str, Any]:
        """The arguments' JSON schema."""
        return {
            "type": "object",
            "properties": self.parameters,
            "required": [p for p in self.parameters if p not in self.optional],
        }

    def declaration(self) -> dict[str, Any]:
        """The tool as OpenAI's `tools` lists it."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema()}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class CallResult:
    """What one call gave. arguments: as parsed, None when they were not a JSON object."""

    text: str
    ok: bool
    arguments: dict[str, Any] | None


BAD_ARGUMENTS = "error: the arguments were not valid JSON"


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """The arguments of a call; empty text counts as no arguments; None for anything but a JSON object."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def call(tools: dict[str, Tool], name: str, raw: str) -> CallResult:
    """Runs one call of the model and returns the text that it will read."""
    arguments = parse_arguments(raw)
    if arguments is None:
        return CallResult(BAD_ARGUMENTS, False, None)
    tool = tools.get(name)
    if tool is None:
        return CallResult(f"error: no tool named {name}", False, arguments)
    problem = _misfit(tool, arguments)
    if problem:
        return CallResult(f"error: {problem}", False, arguments)
    try:
        return CallResult(tool.run(**arguments), True, arguments)
    except Exception as e:  # whatever a tool meets, the model reads it and the run goes on
        return CallResult(f"error: {e}", False, arguments)


def _misfit(tool: Tool, arguments: dict[str, Any]) -> str | None:
    missing = [p for p in tool.parameters if p not in arguments and p not in tool.optional]
    if missing:
        return f"{tool.name} needs {', '.join(missing)}"
    unknown = [a for a in arguments if a not in tool.parameters]
    if unknown:
        return f"{tool.name} has no argument {', '.join(map(str, unknown))}"
    for name, value in arguments.items():
        kind = tool.parameters[name].get("type")
        if kind == "string" and not isinstance(value, str):
            return f"{tool.name}: {name} must be text"
        if kind == "integer" and (not isinstance(value, int) or isinstance(value, bool)):
            return f"{tool.name}: {name} must be a whole number"
    return None
