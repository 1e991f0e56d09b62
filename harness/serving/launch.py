"""A llama-server binary of the user's, started per run; everything but its command line is shared with `embedded`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.serving.embedded import TRACE, ModelFile, model_path
from harness.serving.errors import ServingError
from harness.serving.local import HOST, open_local
from harness.serving.running import RunningServer
from harness.serving.threads import physical_cores
from harness.settings import ServerSettings

BINARY = "llama-server"
VERSION_TIMEOUT_S = 30.0
# "version: 10587 (2cbfdf4)", since autumn 2026 "version: 0.6.0 (build 10587, commit 2cbfdf4)".
_VERSION = re.compile(r"version: (?:\S+ \(build )?(\d+)(?:, commit | \()(\w+)\)")


@contextmanager
def open_launch(
    settings: ServerSettings, model: ModelFile, run_dir: Path, chat_template: str | None = None
) -> Iterator[RunningServer]:
    """A ready, cold server with exactly the asked window; see open_local for its end and its errors."""
    flags = _flags(settings, model_path(model), chat_template)
    start = [sys.executable, "-m", "harness.serving.tether", str(os.getpid()), find_binary(settings)]

    def command(port: int, slots: Path) -> list[str]:
        return [*start, *flags, "--slot-save-path", f"{slots}{os.sep}", "--host", HOST, "--port", str(port)]

    with open_local(settings, run_dir, None, flags, command) as server:
        yield server


def find_binary(settings: ServerSettings) -> str:
    """The path of the program: server.binary, else llama-server on the PATH."""
    asked = settings.binary or BINARY
    found = shutil.which(Path(asked).expanduser())
    if found is None:
        place = "on the PATH" if os.sep not in asked else "there, or it can't be run"
        raise ServingError(f"server.binary: no {asked} {place}; install llama.cpp, or use server=embedded")
    return str(Path(found).absolute())


def build(settings: ServerSettings) -> str | None:
    """`bNUMBER-COMMIT` as the program tells it (and later /props); None when it says something else."""
    try:
        done = subprocess.run(
            [find_binary(settings), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ServingError(f"server.binary: {settings.binary or BINARY} --version does not answer ({e})") from e
    found = _VERSION.search(done.stdout + done.stderr)
    return f"b{found[1]}-{found[2]}" if found else None


def _flags(settings: ServerSettings, path: str, chat_template: str | None) -> list[str]:
    flags = ["-m", path, "-c", str(settings.n_ctx), "-np", "1", "-t", str(settings.threads or physical_cores())]
    flags += ["--jinja", "--no-warmup", "--cache-ram", "0", "--slots", "-lv", str(TRACE)]
    # On by default until August 2025, off since: said either way.
    flags.append("--context-shift" if settings.context_shift else "--no-context-shift")
    if settings.cache_reuse:
        flags += ["--cache-reuse", str(settings.cache_reuse)]
    if chat_template is not None:
        flags += ["--chat-template", chat_template]
    return [*flags, *settings.extra_args]
