"""Where models lie and how they are fetched, read once from the environment.

| variable | meaning |
|---|---|
| `CALLEDSHOT_CACHE` | the cache: models lie in its `models` folder (default: `calledshot` in the user's cache folder) |
| `CALLEDSHOT_MODEL_DIR` | folders of the user's own .gguf files, separated like `PATH`; looked at, never written |
| `CALLEDSHOT_MODELS` | more catalogue files, separated like `PATH` (besides `conf/models.yaml` of the study) |
| `CALLEDSHOT_PIP_ARGS` | further arguments of `pip download`, in shell quoting |
| `HF_ENDPOINT` | the Hugging Face hub or a mirror of it (the name its own tools use) |
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.models.errors import ModelRequestError

DEFAULT_HUB = "https://huggingface.co"


@dataclass(frozen=True)
class StoreSettings:
    """`folder` is the model cache. `retry_wait` and `timeout` are in seconds.

    `retries` is how often in a row a connection may break without a new byte before its source is given up.
    """

    folder: Path
    model_dirs: tuple[Path, ...] = ()
    catalogues: tuple[Path, ...] = ()
    pip_args: tuple[str, ...] = ()
    hub: str = DEFAULT_HUB
    retries: int = 3
    retry_wait: float = 2.0
    timeout: float = 30.0


def store_settings(study: Path | None = None, environ: Mapping[str, str] = os.environ) -> StoreSettings:
    """The settings for a study's folder (default: the working directory) and an environment."""
    try:
        pip_args = tuple(shlex.split(environ.get("CALLEDSHOT_PIP_ARGS", "")))
    except ValueError as error:
        raise ModelRequestError(f"CALLEDSHOT_PIP_ARGS cannot be split like a shell line: {error}") from None
    own = (study or Path.cwd()) / "conf" / "models.yaml"
    return StoreSettings(
        folder=_cache(environ) / "models",
        model_dirs=_paths(environ.get("CALLEDSHOT_MODEL_DIR", "")),
        catalogues=((own,) if own.is_file() else ()) + _paths(environ.get("CALLEDSHOT_MODELS", "")),
        pip_args=pip_args,
        hub=environ.get("HF_ENDPOINT") or DEFAULT_HUB,
    )


def _cache(environ: Mapping[str, str]) -> Path:
    if environ.get("CALLEDSHOT_CACHE"):
        return Path(environ["CALLEDSHOT_CACHE"]).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "calledshot"
    # The XDG specification: a relative value is to be ignored.
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "calledshot"


def _paths(value: str) -> tuple[Path, ...]:
    return tuple(Path(item).expanduser().absolute() for item in value.split(os.pathsep) if item)
