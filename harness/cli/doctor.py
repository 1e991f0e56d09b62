"""calledshot doctor: what this machine can do for an experiment, what it can't, and the mend."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.models import ModelError, catalogue, resolve, store_settings
from harness.workspace.capabilities import capabilities

ROOM_BYTES = 3 * 2**30


@dataclass(frozen=True)
class Finding:
    """One line of the doctor. needed: without it `calledshot run` can't work as it comes; ok None: not there, not needed."""

    what: str
    ok: bool | None
    words: str
    needed: bool = True


def python() -> Finding:
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding("Python", fits, platform.python_version() + ("" if fits else ": 3.11 to 3.13 are supported"))


def git() -> Finding:
    found = shutil.which("git")
    return Finding("git", found is not None, found or "not on the path: predictions can't be locked by commit")


def sandbox() -> list[Finding]:
    can = capabilities()
    if not can["available"]:
        return [Finding("sandbox", False, can["why_not"])]
    found = [Finding("sandbox", True, f"bubblewrap, commands run as {str(can['user']).replace('_', ' ')}")]
    missing = [name for name, holds in can["holds"].items() if not holds]
    words = "all limits hold" if not missing else f"not held: {', '.join(missing)}; {'; '.join(can['notes'])}"
    return [*found, Finding("sandbox limits", not missing, words, needed=False)]


def embedded() -> Finding:
    try:
        from harness.serving.embedded import build

        return Finding("embedded server", True, f"llama.cpp in the wheel, build {build()}")
    except Exception as e:
        return Finding("embedded server", False, f"xllamacpp can't be used here ({e}): server=launch or server=attach")


def binary() -> Finding:
    found = shutil.which("llama-server")
    return Finding(
        "llama-server", True if found else None, found or "not on the path (only server=launch needs it)", needed=False
    )


def models() -> Finding:
    here = []
    for name in catalogue():
        try:
            resolve(name)
            here.append(name)
        except ModelError:
            continue
    words = ", ".join(here) or "none here yet: calledshot models fetch NAME"
    return Finding("models", bool(here) or None, words, needed=False)


def room() -> Finding:
    folder = store_settings().folder
    place = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(place).free
    return Finding(
        "disk", free > ROOM_BYTES, f"{free / 2**30:.1f} GiB free at {place} (a model needs about 1.1)", needed=False
    )


def machine() -> Finding:
    cores = os.cpu_count() or 0
    words = f"{cores} cores, {_memory_gib()}"
    if shutil.which("nvidia-smi"):
        asked = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=False)
        words += f", {asked.stdout.strip().splitlines()[0]}" if asked.returncode == 0 and asked.stdout else ""
    return Finding("machine", True, words, needed=False)


def _memory_gib() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "memory unknown"
    return f"{size / 2**30:.0f} GiB of memory"


def examine() -> list[Finding]:
    checks: list[Callable[[], Any]] = [python, git, sandbox, embedded, binary, models, room, machine]
    found: list[Finding] = []
    for check in checks:
        result = check()
        found += result if isinstance(result, list) else [result]
    return found


def doctor_command(as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False) -> None:
    """Say what this machine can do for an experiment; exit 1 when something that every run needs is missing."""
    findings = examine()
    if as_json:
        print(json.dumps({"findings": [asdict(f) for f in findings]}, indent=1))
    else:
        table = Table("", "", "", show_header=False)
        for f in findings:
            mark = {True: "ok", False: "MISSING" if f.needed else "weak", None: "-"}[f.ok]
            table.add_row(f.what, mark, Text(f.words))
        Console().print(table)
    if any(f.needed and f.ok is False for f in findings):
        raise typer.Exit(1)
