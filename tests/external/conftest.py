from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from external_lab import SAYS, planned

from harness.serving.running import RunningServer
from harness.serving.scripted.opening import open_scripted
from harness.settings import ServerSettings
from harness.sweep.run import RunOutcome, execute


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
def run_program(tmp_path: Path) -> Callable[..., RunOutcome]:
    """Runs the text of a Python program as the agent of one whole run against the double."""

    def run(program: str, *overrides: str, scenario: str = SAYS, name: str = "agent") -> RunOutcome:
        return execute(planned(tmp_path, program, *overrides, scenario=scenario, name=name))

    return run
