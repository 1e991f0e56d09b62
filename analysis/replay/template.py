"""A model's chat template, rendered here: thousands of times faster than asking a server, and checked against recorded sizes.

llama.cpp reads the same Jinja text: call arguments as objects, whole floats printed without a point, JSON as it stands. What
differs (a template that needs other treatment) shows in prompt sizes that are not the recorded ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from analysis.replay.errors import ReplayError

Message = dict[str, Any]


class LocalTemplate:
    """source: the Jinja text. specials: names the template may use, bos_token and eos_token."""

    def __init__(self, source: str, specials: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        try:
            self._template = environment.from_string(source)
        except TemplateError as e:
            raise ReplayError(f"the chat template can't be read: {e}") from e
        self._specials = dict(specials)
        self._objects: dict[str, Any] = {}

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]] | None) -> str | None:
        """The prompt with the assistant's turn begun; None for a list that the template refuses."""
        try:
            return self._template.render(
                messages=[self._as_objects(m) for m in messages],
                tools=tools,
                add_generation_prompt=True,
                **self._specials,
            )
        except (TemplateError, RecursionError):
            return None

    def _as_objects(self, message: Message) -> Message:
        calls = message.get("tool_calls")
        if not calls:
            return message
        return message | {"tool_calls": [c | {"function": self._function(c["function"])} for c in calls]}

    def _function(self, function: dict[str, Any]) -> dict[str, Any]:
        raw = function["arguments"]
        if raw not in self._objects:
            try:
                self._objects[raw] = _plain(json.loads(raw))
            except (ValueError, RecursionError):
                self._objects[raw] = raw
        return function | {"arguments": self._objects[raw]}


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
