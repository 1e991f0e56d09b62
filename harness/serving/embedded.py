"""llama.cpp's own server from the xllamacpp wheel, in a child process of its own per run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from harness.serving.errors import ServingError
from harness.serving.local import HOST, open_local
from harness.serving.running import RunningServer
from harness.serving.threads import physical_cores
from harness.settings import ServerSettings

TRACE = 4  # the verbosity at which every build prints prompt sizes, reuse and checkpoints


class ModelFile(Protocol):
    """The part of a LocalModel that a server needs."""

    @property
    def path(self) -> Path: ...


def build() -> str:
    """The wheel's version: the wheel does not carry llama.cpp's own build number."""
    try:
        return f"xllamacpp-{metadata.version('xllamacpp')}"
    except metadata.PackageNotFoundError as e:
        raise ServingError("server.kind=embedded needs the xllamacpp package: pip install xllamacpp") from e


@contextmanager
def open_embedded(
    settings: ServerSettings, model: ModelFile, run_dir: Path, chat_template: str | None = None
) -> Iterator[RunningServer]:
    """A ready, cold server with exactly the asked window; see open_local for its end and its errors."""
    parameters = _parameters(settings, model_path(model), chat_template)

    flags = [f"{name}={json.dumps(value)}" for name, value in parameters.items()]

    def command(port: int, slots: Path) -> list[str]:
        values = parameters | {"port": port, "slot_save_path": f"{slots}{os.sep}"}
        return [sys.executable, "-m", "harness.serving.embedded_child", str(os.getpid()), json.dumps(values)]

    with open_local(settings, run_dir, build(), flags, command) as server:
        yield server


def model_path(model: ModelFile) -> str:
    """The model file's path; raises ServingError when there is no such file."""
    path = Path(model.path)
    if not path.is_file():
        raise ServingError(f"model: {path} is no file; get it with `calledshot models fetch`, or set model.path")
    return str(path)


def _parameters(settings: ServerSettings, path: str, chat_template: str | None) -> dict[str, Any]:
    threads = settings.threads or physical_cores()
    values: dict[str, Any] = {
        "model.path": path,
        "hostnames": [HOST],
        "n_ctx": settings.n_ctx,
        "n_parallel": 1,
        "cache_ram_mib": 0,
        "cache_idle_slots": False,
        "n_cache_reuse": settings.cache_reuse,
        "ctx_shift": settings.context_shift,
        "fit_params": False,  # would choose another window than the asked one where memory is short
        "use_jinja": True,
        "endpoint_slots": True,
        "ui": False,
        "warmup": False,
        "verbosity": TRACE,
        "cpuparams.n_threads": threads,
        "cpuparams_batch.n_threads": threads,
    }
    if chat_template is not None:
        values["chat_template"] = chat_template
    return values | dict(_extra(arg) for arg in settings.extra_args)


def _extra(arg: str) -> tuple[str, Any]:
    name, equals, text = arg.partition("=")
    if not equals:
        raise ServingError(f"server.extra_args: {arg!r} is not NAME=VALUE (a field of xllamacpp.CommonParams)")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text
