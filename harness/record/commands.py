"""What a shell command's text shows: paths outside the copy, guesses at where the repo is, a test run. Nothing is executed.

A reading of text, so a lower bound: variables, substitutions and programs that change folders by themselves are not seen.
Here-document bodies are left out, because they are data of the command, not words of it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Any

# Where models believe a repo to be mounted; the list is the harness's own, taken from what agents were seen to try.
GUESSED_ROOTS = ("/repo", "/app", "/workspace", "/workspaces", "/project", "/code", "/src", "/testbed", "/home/user")
# Devices are no places outside the repo.
DEVICES = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd", "/dev/zero", "/dev/urandom")
PYTEST = re.compile(
    r"(?:^|[;&|(\n]|\b(?:env|time|exec|command|timeout\s+\S+)\s)\s*(?:\w+=\S*\s+)*"
    r"(?:(?:\S*/)?python[\d.]*\s+(?:-\w+\s+)*-m\s+)?(?:\S*/)?(?:pytest|py\.test)(?=$|[\s;&|)])"
)
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(.*?)\n(.*?)(?:\n\s*\2(?=\n|$)|\Z)", re.DOTALL)
# The first operand of these is a pattern or a script; one that starts with a slash is no path.
PATTERN_FIRST = re.compile(r"(?:\S*/)?(?:sed|awk|grep|egrep|fgrep|rg|perl)")
TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")


def is_test_file(path: str) -> bool:
    """Whether a path names a test file by pytest's own naming."""
    return bool(TEST_FILE.search(path))


def runs_pytest(command: str) -> bool:
    """Whether the command starts pytest, as far as its text shows."""
    return bool(PYTEST.search(_without_heredocs(command)))


def outside_paths(command: str, mount: str | None) -> list[str]:
    """The words of a command that name a place outside the copy. mount: the copy's folder as commands see it."""
    return [w for w in _words(command) if is_outside(w, mount)]


def is_outside(path: str, mount: str | None) -> bool:
    """Whether a path, relative to the copy or absolute, leads out of it; links are not followed."""
    if path.startswith("~"):
        return True
    if path.startswith("/"):
        plain = posixpath.normpath(path)
        if any(plain == d or plain.startswith(d + "/") for d in DEVICES):
            return False
        return mount is None or not _below(plain, posixpath.normpath(mount))
    return posixpath.normpath(path).split("/")[0] == ".."


def is_guess(path: str, mount: str | None) -> bool:
    """Whether an absolute path is one of the usual guesses at the repo's place, and not its true one."""
    if not path.startswith("/") or not is_outside(path, mount):
        return False
    plain = posixpath.normpath(path)
    return any(_below(plain, root) for root in GUESSED_ROOTS)


def command_of(arguments: dict[str, Any] | None) -> str | None:
    """The command of a bash call's arguments."""
    value = (arguments or {}).get("command")
    return value if isinstance(value, str) else None


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _without_heredocs(command: str) -> str:
    return HEREDOC.sub(lambda m: m.group(3), command)


def _words(command: str) -> Iterator[str]:
    text = _without_heredocs(command)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = re.split(r"[\s;&|<>()'\"]+", text)
    pattern_next = False
    for word in words:
        if PATTERN_FIRST.fullmatch(word):
            pattern_next = True
        elif pattern_next and not word.startswith("-"):
            pattern_next = False
            continue
        yield word.rsplit("=", 1)[-1]
