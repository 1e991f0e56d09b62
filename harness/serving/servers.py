"""The way to a model server: `open_server` for every kind of setting, and the build that a run id is made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from harness.serving import attach, embedded, launch, tape
from harness.serving.errors import ServingError
from harness.serving.running import RunningServer
from harness.serving.scripted import documents
from harness.serving.scripted.opening import open_scripted
from harness.settings import ServerSettings

# llama-server names the sampled token beside its log probability; that of one rival is the least that makes it do so.
ASK_FOR_TOKENS = {"logprobs": True, "top_logprobs": 1}

__all__ = ["RunningServer", "ServedModel", "ServingError", "open_server", "server_build"]


class ServedModel(Protocol):
    """The part of a LocalModel that a server needs."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> Path: ...


@contextmanager
def open_server(
    settings: ServerSettings,
    model: ServedModel | None,
    run_dir: Path,
    *,
    chat_template: str | None = None,
    scenario_dirs: tuple[Path, ...] = (),
    seed: int | None = None,
) -> Iterator[RunningServer]:
    """A server that is ready, with the asked window; entering the context starts it, leaving it ends it.

    model: the file for the kinds that load one, the name for a server that has several; None where neither is needed.
    chat_template: another template than the model's own, as text or as a file's path.
    scenario_dirs, seed: for the scripted kind, see open_scripted.
    With settings.record_tape the client's traffic is written to run_dir/tape.jsonl. With settings.record_tokens every request
    asks for the reply's tokens; a tape goes by what was asked when it was made. Raises ServingError.
    """
    opened: AbstractContextManager[RunningServer]
    if settings.kind == "scripted":
        opened = open_scripted(settings, run_dir, scenario_dirs=scenario_dirs, seed=seed)
    else:
        opened = _open(settings, model, run_dir, _template(chat_template))
    with opened as server:
        if settings.record_tokens and settings.kind != "tape":
            server.request_extra = server.request_extra | ASK_FOR_TOKENS
        if settings.record_tape:
            server.open_transport = lambda: tape.RecordingTransport(run_dir / tape.TAPE, server)
        try:
            yield server
        finally:
            server.close()


def server_build(settings: ServerSettings) -> str | None:
    """The build that will serve, told without starting a server; None where it does not say.

    Raises ServingError when the program, the server at the URL or the tape is not there.
    """
    match settings.kind:
        case "embedded":
            return embedded.build()
        case "launch":
            return launch.build(settings)
        case "attach":
            return attach.told_by(settings)
        case "tape":
            return tape.read_tape(Path(settings.tape or ""))[0]["build"]
        case "scripted":
            return documents.BUILD


def _open(
    settings: ServerSettings, model: ServedModel | None, run_dir: Path, chat_template: str | None
) -> AbstractContextManager[RunningServer]:
    match settings.kind:
        case "embedded":
            return embedded.open_embedded(settings, _needed(model, settings), run_dir, chat_template)
        case "launch":
            return launch.open_launch(settings, _needed(model, settings), run_dir, chat_template)
        case "attach":
            return attach.open_attached(settings, model)
        case "tape":
            return tape.open_tape(settings)
    raise ServingError(f"server.kind: no such kind as {settings.kind}")


def _needed(model: ServedModel | None, settings: ServerSettings) -> ServedModel:
    if model is None:
        raise ServingError(f"server.kind={settings.kind} needs a model file: set model")
    return model


def _template(value: str | None) -> str | None:
    if value is None or "\n" in value or "{" in value or not value.endswith((".jinja", ".txt")):
        return value
    try:
        return Path(value).expanduser().read_text(encoding="utf-8")
    except OSError as e:
        raise ServingError(f"model.chat_template: {value} can't be read ({e.strerror})") from e
