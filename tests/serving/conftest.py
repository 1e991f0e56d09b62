"""Servers the serving tests talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import answering_server
import pytest
from answering_server import Answering

from harness.models import LocalModel, ModelError, resolve
from harness.settings import ServerSettings


@pytest.fixture
def answering() -> Iterator[Answering]:
    server = answering_server.start()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture(scope="session")
def small_model() -> LocalModel:
    try:
        return resolve("smollm2-135m")
    except ModelError as e:
        pytest.skip(f"no small model here: {e}")


@pytest.fixture
def embedded_settings() -> ServerSettings:
    return ServerSettings(kind="embedded", n_ctx=256, threads=1, start_timeout_s=60, request_timeout_s=120)


@pytest.fixture
def broken_model(tmp_path: Path, small_model: LocalModel) -> LocalModel:
    """The first two million bytes of a model."""
    path = tmp_path / "broken.gguf"
    with small_model.path.open("rb") as whole:
        path.write_bytes(whole.read(2_000_000))
    return LocalModel("broken", path, "", 2_000_000, None)
