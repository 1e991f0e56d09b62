from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from external_lab import SAYS, Ended, run_alone

from harness.serving.running import RunningServer
from harness.serving.scripted.opening import open_scripted
from harness.settings import ServerSettings


@pytest.fixture
def double(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Opens a double that plays a scenario's text."""
    with ExitStack() as stack:

        def open_one(text: str = SAYS, n_ctx: int = 8192, name: str = "scenario") -> RunningServer:
            folder = tmp_path / f"double_{name}_{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            file = folder / f"{name}.yaml"
            file.write_text(text)
            settings = ServerSettings(kind="scripted", n_ctx=n_ctx, scenario=str(file))
            return stack.enter_context(open_scripted(settings, folder))

        yield open_one


@pytest.fixture
def run_program(tmp_path: Path) -> Callable[..., Ended]:
    """Runs the text of a Python program as the agent of one run against the double, without grading."""
    return partial(run_alone, tmp_path)
