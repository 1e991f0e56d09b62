"""The way to a model server: `open_server` for every kind of setting, and the build that a run id is made of."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from harness.serving import embedded
from harness.serving.embedded import ModelFile
from harness.serving.errors import ServingError
from harness.serving.running import RunningServer
from harness.settings import ServerSettings

__all__ = ["RunningServer", "ServingError", "open_server", "server_build"]


def open_server(
    settings: ServerSettings, model: ModelFile | None, run_dir: Path, *, chat_template: str | None = None
) -> AbstractContextManager[RunningServer]:
    """A server that is ready, with the asked window; entering the context starts it, leaving it ends it.

    model is needed by the kinds that load one. Raises ServingError (on entering, or at once for a wrong setting).
    """
    if settings.kind == "embedded":
        return embedded.open_embedded(settings, _needed(model, settings), run_dir, chat_template)
    raise ServingError(f"server.kind: {settings.kind} can't be opened here")


def server_build(settings: ServerSettings) -> str | None:
    """The build that will serve, told without starting a server; None where only the server itself knows."""
    if settings.kind == "embedded":
        return embedded.build()
    return None


def _needed(model: ModelFile | None, settings: ServerSettings) -> ModelFile:
    if model is None:
        raise ServingError(f"server.kind={settings.kind} needs a model file: set model")
    return model
