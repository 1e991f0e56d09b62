from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.settings import SandboxSettings
from harness.workspace import LocalWorkspace, open_workspace
from harness.workspace.copy import Copy

Opener = Callable[..., LocalWorkspace]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens a workspace over a new folder: opened({"a.py": "x = 1"}, memory_bytes=...)."""
    with ExitStack() as stack:

        def open_one(files: dict[str, str] | None = None, name: str = "run", **settings: object) -> LocalWorkspace:
            root, scratch = tmp_path / name / "project", tmp_path / name / "tmp"
            root.mkdir(parents=True)
            scratch.mkdir()
            for path, text in (files or {}).items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return stack.enter_context(open_workspace(Copy(root, scratch), SandboxSettings(**settings)))

        yield open_one
