"""Texts of a scenario: written out, or made when the step is played.

A maker is a mapping with one of: `tokens: N`, `chars: N` (filler of exactly that size), `from_file: PATH` (with `replace:
[[old, new], …]` on demand). PATH is looked for beside the scenario, in the current directory, and in the project.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.paths import shipped
from harness.serving.errors import ServingError
from harness.serving.scripted import filler

_MAKERS = ("tokens", "chars", "from_file")


def make(value: Any, folder: Path, seed: str) -> Any:
    """The value with every maker in it replaced by its text; raises ServingError for one that can't be made."""
    if isinstance(value, dict):
        if set(value) & set(_MAKERS) and set(value) <= {*_MAKERS, "replace"}:
            return _made(value, folder, seed)
        return {k: make(v, folder, f"{seed}/{k}") for k, v in value.items()}
    if isinstance(value, list):
        return [make(v, folder, f"{seed}/{n}") for n, v in enumerate(value)]
    return value


def _made(value: dict[str, Any], folder: Path, seed: str) -> str:
    if "tokens" in value:
        return filler.prose(int(value["tokens"]), seed)
    if "chars" in value:
        return filler.characters(int(value["chars"]), seed)
    text = _file(str(value["from_file"]), folder)
    for old, new in value.get("replace") or []:
        if old not in text:
            raise ServingError(f"scenario: from_file {value['from_file']}: nothing to replace, {old!r} is not in it")
        text = text.replace(old, new)
    return text


def _file(name: str, folder: Path) -> str:
    for place in (folder, Path.cwd(), shipped("tasks").parent):
        if (place / name).is_file():
            return (place / name).read_text(encoding="utf-8")
    raise ServingError(
        f"scenario: from_file: there is no {name} beside the scenario, in the current directory or the project"
    )
