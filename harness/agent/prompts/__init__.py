"""System prompts as text files; `agent.prompt` names one."""

from __future__ import annotations

from importlib import resources

from harness.settings import SettingsError


def prompt(name: str) -> str:
    """The text of a shipped system prompt; raises SettingsError for an unknown name."""
    folder = resources.files(__package__)
    file = folder / f"{name}.md"
    if not file.is_file():
        known = sorted(f.name[:-3] for f in folder.iterdir() if f.name.endswith(".md"))
        raise SettingsError(f"agent.prompt: {name!r} is not one of {', '.join(known)}")
    return file.read_text(encoding="utf-8").strip()
