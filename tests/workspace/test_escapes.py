"""Every attempt of data/attempts.yaml, in turn in one persistent sandbox, with things outside that really are there.

Run as whoever runs the tests; test_ordinary_user.py runs this file again as another user.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import harness
from harness.settings import SandboxSettings
from harness.workspace import LocalWorkspace, load_task, open_workspace
from harness.workspace.copy import Copy

DATA = Path(__file__).parent / "data"
ATTEMPTS = yaml.safe_load((DATA / "attempts.yaml").read_text(encoding="utf-8"))
SECRET = "CALLEDSHOT_TEST_SECRET"


def checksum(top: Path) -> str:
    """Over names, kinds, modes, link targets and contents below a folder."""
    lines = []
    for path in sorted(top.rglob("*")):
        what = os.readlink(path) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""  # noqa: PTH115
        lines.append(f"{path.relative_to(top)} {path.lstat().st_mode:o} {what}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class Outside:
    """Decoys on this machine, and the sandbox that must not reach them."""

    top: Path
    inside: LocalWorkspace
    names: dict[str, object]
    bystander: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    top = tmp_path_factory.mktemp("outside")
    task = load_task("cart")
    for name in ("home", "other", "models"):
        (top / name).mkdir()
    (top / "home" / "secret.txt").write_text("secret of the host\n")
    (top / "other" / "other.txt").write_text("of another run: secret of the host\n")
    (top / "models" / "a.gguf").write_bytes(b"GGUF")
    shutil.copytree(task.hidden, top / "hidden")
    shutil.copytree(task.repo, top / "original")
    run = tmp_path_factory.mktemp("run")
    copy = Copy(run / "project", run / "tmp")
    copy.root.mkdir()
    copy.scratch.mkdir()
    shutil.copy(DATA / "calls.py", copy.root)
    abstract = f"calledshot-{os.getpid()}"
    marker = f"bystander-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (f"\0{abstract}", str(top / "s")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", marker])
        stack.callback(bystander.wait)
        stack.callback(bystander.kill)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(SECRET, "secret-value")
            inside = stack.enter_context(open_workspace(copy, SandboxSettings()))
            inside.run("true", timeout_s=60)
        names = {
            **{name: top / name for name in ("home", "other", "models", "hidden", "original")},
            "code": Path(harness.__file__).parent,
            "pid": bystander.pid,
            "parent": os.getpid(),
            "marker": marker,
            "port": server.getsockname()[1],
            "abstract": abstract,
            "socket": top / "s",
            "secret": SECRET,
        }
        yield Outside(top, inside, names, bystander)


def filled(command: str, names: dict[str, object]) -> str:
    """Names in braces, where they are known ones: commands have braces of their own."""
    for name, value in names.items():
        command = command.replace(f"{{{name}}}", str(value))
    return command


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_attempt_is_refused(outside, attempt):
    before = checksum(outside.top)
    result = outside.inside.run(filled(ATTEMPTS[attempt], outside.names), timeout_s=60)
    assert "ESCAPED" not in result.stdout, result
    assert not re.search("SyntaxError|IndentationError|NameError|ModuleNotFound|unbound", result.stderr), result
    assert not result.timed_out
    assert checksum(outside.top) == before
    assert outside.bystander.poll() is None, "a process outside was ended"
    assert outside.inside.run("echo still here", timeout_s=60).stdout == "still here\n"


def test_an_attempt_that_succeeds_would_be_seen(outside):
    """The same commands' success, where nothing is in the way: what the check looks for is really printed."""
    command = filled(ATTEMPTS["read a file of the home folder"], outside.names)
    assert "ESCAPED" in subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False).stdout
    command = filled(ATTEMPTS["the loopback of the host"], outside.names).replace("python", sys.executable, 1)
    assert "ESCAPED" in subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False).stdout
    command = filled(ATTEMPTS["an abstract socket"], outside.names).replace("python", sys.executable, 1)
    assert "ESCAPED" in subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False).stdout


def test_the_harness_does_not_follow_links_that_were_left(outside):
    """A name that the model gives to its file tools, after a command laid links."""
    from harness.agent.workspace import OutsideWorkspace

    home = outside.names["home"]
    outside.inside.run(
        f"ln -sfn {home} way; ln -sfn {home}/secret.txt file; ln -sfn way/secret.txt chain", timeout_s=60
    )
    for name in ("way/secret.txt", "file", "chain", "way/../secret.txt"):
        try:
            found = outside.inside.resolve(name)
        except OutsideWorkspace:
            continue
        assert found.is_relative_to(outside.inside.root), name
        assert not found.exists(), name


def test_paths_of_the_harness_do_not_show(outside):
    """But for the copy's, the interpreter's and the packages' own, which the kernel tells in mountinfo."""
    said = outside.inside.run("cat /proc/self/mountinfo /proc/self/mounts", timeout_s=60).stdout
    assert str(Path(harness.__file__).parent) not in said
