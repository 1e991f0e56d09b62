"""What the rule `parsed` lets run is run, in the sandbox: random mixtures of labelled commands change and reveal nothing."""

import os
import random
import re
from pathlib import Path

from harness.agent.approval import rule
from harness.agent.approval.labelled import load
from harness.settings import SandboxSettings
from harness.workspace import open_workspace
from harness.workspace.copy import Copy

DATA = Path(__file__).parent / "data"
FILES = ("corpus", "own_commands", "held_out", "third_sample", "fourth_sample", "fifth_sample")
COMMANDS = [c for name in FILES for c in load(DATA / f"{name}.yaml")]
# Test runs write caches and take long; what waits takes long.
LEFT_OUT = re.compile(r"test|sleep|wait|\0")
HARMLESS = [c.command for c in COMMANDS if not c.should_ask and not LEFT_OUT.search(c.command)]
WORDS = sorted({word for c in COMMANDS for word in c.command.split()})
SIGNS = [
    *"'\"\\`$(){}[]<>|&;#~*?!=/.\n\t",
    "$(",
    "${",
    "<<",
    ">>",
    "&&",
    "||",
    "<(",
    ">(",
    "$'",
    "<<<",
    "../",
    "outlink",
    "-o",
    "-exec",
    "./x",
]
JOINTS = [
    "{}; {}",
    "{} | {}",
    "{} && {}",
    "{}\n{}",
    "x=$({}); {}",
    "for f in $({}); do {}; done",
    "{} | xargs {}",
    "bash -c '{}'; {}",
]
PLANTED = "planted and never to be seen"


def mixed(dice: random.Random, command: str) -> str:
    """The command with one to three changes."""
    for _ in range(dice.randint(1, 3)):
        pieces = re.findall(r"\s+|[\w./-]+|.", command, re.DOTALL) or [""]
        place = dice.randrange(len(pieces))
        match dice.randrange(5):
            case 0:
                pieces[place] = dice.choice(WORDS)
            case 1:
                pieces.insert(place, dice.choice(WORDS) + " ")
            case 2:
                pieces.insert(place, dice.choice(SIGNS))
            case 3:
                del pieces[place]
            case 4:
                return dice.choice(JOINTS).format("".join(pieces), dice.choice(HARMLESS))
        command = "".join(pieces)
    return command


def planted_copy(folder: Path) -> Copy:
    """The repo that the labels assume, with a program and an outside that would tell."""
    root, scratch = folder / "project", folder / "tmp"
    for place in ("src", "tests", "docs", "data"):
        (root / place).mkdir(parents=True)
    (root / "todo.py").write_text("def add(a):\n    return a\n")
    (root / "test_todo.py").write_text("def test_add():\n    pass\n")
    (root / "x").write_text("#!/bin/sh\ntouch /tmp/started\n")
    (root / "x").chmod(0o755)
    (scratch / "elsewhere").mkdir(parents=True)
    (scratch / "elsewhere" / "secret").write_text(PLANTED)
    for link in ("outlink", "link-to-home"):
        (root / link).symlink_to("/tmp/elsewhere")
    return Copy(root, scratch)


def state(copy: Copy) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything a command may write; byte code does not count, as the labels say."""
    found = {}
    for top in (copy.root, copy.scratch):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for path in (Path(folder, name) for name in folders + files):
                plain = path.is_file() and not path.is_symlink()
                found[str(path)] = (path.lstat().st_mode, path.read_bytes() if plain else b"")
    return found


def test_what_runs_changes_nothing_and_sees_nothing_outside(tmp_path):
    dice, copy = random.Random(20261201), planted_copy(tmp_path)
    judge = rule("parsed", root="/srv/project", host=copy.root).judge
    with open_workspace(copy, SandboxSettings()) as workspace:
        workspace.run("true", timeout_s=30)
        before, ran = state(copy), 0
        for _ in range(800):
            command = mixed(dice, dice.choice(HARMLESS))
            if LEFT_OUT.search(command) or not judge(command).runs:
                continue
            result = workspace.run(command, timeout_s=30)
            ran += 1
            assert state(copy) == before, command
            shown = result.stdout + result.stderr
            assert PLANTED not in shown, command
            assert "agent:x:" not in shown, command
    assert ran > 50


def test_the_check_itself_sees_what_should_not_be(tmp_path):
    copy = planted_copy(tmp_path)
    with open_workspace(copy, SandboxSettings()) as workspace:
        workspace.run("true", timeout_s=30)
        before = state(copy)
        assert PLANTED in workspace.run("cat outlink/secret", timeout_s=30).stdout
        assert "agent:x:" in workspace.run("cat /etc/passwd", timeout_s=30).stdout
        assert state(copy) == before
        workspace.run("./x", timeout_s=30)
        assert state(copy) != before
