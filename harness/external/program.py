"""An external agent as settings say it: what is checked before anything starts, and the words and variables it is started with."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.settings import ExternalSettings, RunSettings, SettingsError
from harness.workspace.tree import snapshot

SHIPPED = Path(__file__).parent
INSIDE = "/opt/agent"
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
# The key that stands in for one: the true one never enters the sandbox.
KEY = "called-shot"
BASE_URLS = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "LLAMA_API_BASE",
    "LLAMA_BASE_URL",
    "AIDER_OPENAI_API_BASE",
    "LLM_BASE_URL",
)
KEYS = ("OPENAI_API_KEY", "LLAMA_API_KEY", "AIDER_OPENAI_API_KEY", "LLM_API_KEY")


@dataclass(frozen=True)
class Given:
    """What an external agent is told, by the placeholders' names. files: the folder its files are in; root_url: without /v1."""

    task: str
    task_file: str
    workspace: str
    files: str
    base_url: str
    root_url: str
    model: str
    seed: int
    n_ctx: int
    max_tokens: int
    max_steps: int
    temperature: float

    def fill(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda m: str(getattr(self, m[1])), text)


def words(external: ExternalSettings, given: Given) -> list[str]:
    """The command as it is started: placeholders are filled in after the split, so that a task's text stays one word."""
    return [given.fill(word) for word in shlex.split(external.command)]


def environment(external: ExternalSettings, given: Given) -> dict[str, str]:
    """The variables beside the sandbox's own: the address in the usual spellings, and the preset's."""
    told = dict.fromkeys(BASE_URLS, given.base_url) | dict.fromkeys(KEYS, KEY)
    told |= {"OPENAI_MODEL": given.model, "NO_PROXY": "*", "no_proxy": "*"}
    for entry in external.env:
        name, _, value = entry.partition("=")
        told[name] = given.fill(value)
    return told


def files(external: ExternalSettings, study: Path) -> dict[str, Path]:
    """The agent's own files by their names inside."""
    found: dict[str, Path] = {}
    for entry in external.files:
        path = (study / Path(entry).expanduser()).resolve()
        if not path.exists() and "/" not in entry:
            path = SHIPPED / entry
        if not path.exists():
            raise SettingsError(f"agent.external.files: {entry} is neither below {study} nor shipped")
        if path.name in found or path.name == "task.md":
            raise SettingsError(f"agent.external.files: two files would be {path.name} inside; rename one")
        found[path.name] = path
    return found


def check(settings: RunSettings, study: Path) -> None:
    """Raises SettingsError, one line, for an external agent that can't be started."""
    external = settings.agent.external
    if external is None:
        return
    try:
        split = shlex.split(external.command)
    except ValueError as e:
        raise SettingsError(f"agent.external.command: {e}") from e
    if not split:
        raise SettingsError("agent.external.command: needs a program to start")
    known = tuple(Given.__dataclass_fields__)
    for key, texts in (("command", split), ("env", list(external.env))):
        for name in (m for text in texts for m in PLACEHOLDER.findall(text)):
            if name not in known:
                raise SettingsError(f"agent.external.{key}: no such placeholder {{{name}}}; known: {', '.join(known)}")
    for entry in external.env:
        if not re.match(r"[A-Za-z_]\w*=", entry):
            raise SettingsError(f"agent.external.env: {entry!r} is not NAME=value")
    files(external, study)
    _versions(external, settings.agent.name)


def program_identity(settings: RunSettings, study: Path) -> dict[str, Any] | None:
    """What of an external agent can change a run's result beside its settings: digests of its files, versions of its packages.

    None for an own agent. Raises SettingsError for one that can't be started.
    """
    external = settings.agent.external
    if external is None:
        return None
    check(settings, study)
    digests = {name: _digest(path) for name, path in files(external, study).items()}
    return {"files": digests, "packages": dict(_versions(external, settings.agent.name))}


def _versions(external: ExternalSettings, agent: str) -> Mapping[str, str]:
    found = {}
    for name in external.packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            how = external.install or f"pip install {name}"
            raise SettingsError(f"agent={agent}: needs the package {name}, which is not installed; {how}") from None
    return found


def _digest(path: Path) -> str:
    return snapshot(path).digest if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
