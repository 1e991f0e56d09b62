"""The commands as a person runs them: a process, its streams, its exit code; killed, and two at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from model_things import FileServer, sha256

COMMAND = [sys.executable, "-c", "from harness.models.cli import models_app; models_app()"]
DEADLINE = 60.0


@pytest.fixture
def content(make_gguf) -> bytes:
    return make_gguf(b"weights" * 300_000)


@pytest.fixture
def env(tmp_path: Path, server: FileServer, content: bytes) -> dict[str, str]:
    server.files["/tiny.gguf"] = content
    entry = {"bytes": len(content), "sha256": sha256(content), "licence": "MIT"}
    entry["sources"] = [{"url": f"{server.url}/tiny.gguf"}]
    catalogue = tmp_path / "models.yaml"
    catalogue.write_text(yaml.safe_dump({"tiny": entry}))
    return {**os.environ, "CALLEDSHOT_CACHE": str(tmp_path / "cache"), "CALLEDSHOT_MODELS": str(catalogue)}


@pytest.fixture
def models(env, tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


def start(env: dict[str, str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        return subprocess.Popen(
            [*COMMAND, "fetch", "tiny"], env=env, cwd=folder, stdout=stderr, stderr=stderr, preexec_fn=hear_interrupts
        )


def hear_interrupts() -> None:
    """What a shell starts in the background ignores SIGINT, and so do its children: not so the command under test."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_list_before_and_after_a_fetch(models, tmp_path, content):
    before = json.loads(models("list", "--json").stdout)
    tiny = next(row for row in before["models"] if row["name"] == "tiny")
    assert (tiny["here"], tiny["verified"], tiny["bytes"], tiny["licence"]) == (False, None, len(content), "MIT")
    path = tmp_path / "cache" / "models" / "tiny.gguf"

    fetched = models("fetch", "tiny")
    assert (fetched.returncode, fetched.stdout) == (0, f"{path}\n")
    assert "fetching from 127.0.0.1" in fetched.stderr

    listed = models("list")
    assert [line.split() for line in listed.stdout.splitlines() if line.startswith(("NAME", "tiny", "smollm2"))] == [
        ["NAME", "SIZE", "LICENCE", "HERE", "VERIFIED"],
        ["smollm2-135m", "98", "MB", "Apache-2.0", "no", "-"],
        ["tiny", "2.1", "MB", "MIT", "yes", "yes"],
    ]
    path.write_bytes(content[:-1] + b"!")
    rows = {row["name"]: row for row in json.loads(models("list", "--json").stdout)["models"]}
    assert (rows["tiny"]["here"], rows["tiny"]["verified"]) == (True, None)
    checked = models("list", "--json", "--verify")
    rows = {row["name"]: row for row in json.loads(checked.stdout)["models"]}
    assert (rows["tiny"]["here"], rows["tiny"]["verified"]) == (True, False)
    assert "is not tiny: its sha256 is" in checked.stderr


def test_a_wrong_name_fetches_nothing_and_ends_with_2(models, server):
    result = models("fetch", "tiny", "tinny")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("calledshot: no model is named 'tinny': did you mean tiny?")
    assert server.asked == []


def test_a_faulty_catalogue_ends_with_2(models, env):
    Path(env["CALLEDSHOT_MODELS"]).write_text("tiny: {bits: 4}\n")
    result = models("list")
    assert (result.returncode, result.stdout) == (2, "")
    assert "models.yaml: tiny: bits is not a key here" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_fetch_that_fails_ends_with_1(models, server):
    server.files.clear()
    result = models("fetch", "tiny")
    assert (result.returncode, result.stdout) == (1, "")
    assert "calledshot: tiny could not be fetched: 127.0.0.1" in result.stderr.splitlines()[-1]


def test_killed_in_the_middle_and_continued(models, env, server, tmp_path, content):
    server.hold_at = 1 << 20
    part = tmp_path / "cache" / "models" / "tiny.gguf.part"
    process = start(env, tmp_path, tmp_path / "log")
    wait_until(lambda: size(part) > 0)
    process.kill()
    assert process.wait(DEADLINE) == -signal.SIGKILL
    kept = size(part)
    server.go_on.set()
    assert models("fetch", "tiny").returncode == 0
    assert server.asked == [("/tiny.gguf", None), ("/tiny.gguf", f"bytes={kept}-")]
    assert (tmp_path / "cache" / "models" / "tiny.gguf").read_bytes() == content


def test_interrupted_says_that_nothing_is_lost(env, server, tmp_path):
    server.hold_at = 1 << 20
    log = tmp_path / "log"
    process = start(env, tmp_path, log)
    wait_until(lambda: size(tmp_path / "cache" / "models" / "tiny.gguf.part") > 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE) == 130
    assert log.read_text().splitlines()[-1].startswith("calledshot: interrupted; what was fetched is kept")


def test_two_at_once_fetch_once(env, server, tmp_path, content):
    server.hold_at = 1 << 20
    first = start(env, tmp_path, tmp_path / "first")
    wait_until(lambda: len(server.asked) == 1)
    second = start(env, tmp_path, tmp_path / "second")
    wait_until(lambda: "another process is fetching it" in (tmp_path / "second").read_text())
    server.go_on.set()
    assert (first.wait(DEADLINE), second.wait(DEADLINE)) == (0, 0)
    assert server.asked == [("/tiny.gguf", None)]
    assert (tmp_path / "cache" / "models" / "tiny.gguf").read_bytes() == content
