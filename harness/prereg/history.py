"""What git can say about a study: commits, ancestry, files as they were, and what is not committed.

Everything goes through the `git` program, reading only. Replacement objects are ignored, and variables that would point git
at another repository are taken out of its environment.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_POINTING_ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
)


@dataclass(frozen=True)
class History:
    """A repository with at least one commit. root: its top folder."""

    root: Path

    @staticmethod
    def of(folder: Path) -> History | None:
        """The repository that holds a folder; None without git, outside any repository or before the first commit."""
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None or _git(folder, "rev-parse", "--verify", "HEAD^{commit}") is None:
            return None
        return History(Path(top.decode().rstrip("\n")))

    def head(self) -> str:
        return self._text("rev-parse", "HEAD")

    def shallow(self) -> bool:
        """True when older commits were left out on cloning."""
        return self._text("rev-parse", "--is-shallow-repository") == "true"

    def has(self, commit: str) -> bool:
        return _git(self.root, "cat-file", "-e", f"{commit}^{{commit}}") is not None

    def is_ancestor(self, older: str, newer: str) -> bool:
        """True when `older` is `newer` or one of its ancestors. In a shallow clone False can be wrong, True can't."""
        return _git(self.root, "merge-base", "--is-ancestor", older, newer) is not None

    def file_at(self, commit: str, path: str) -> bytes | None:
        """The content of a file (path from the top folder) in a commit; None when it is not there."""
        return _git(self.root, "show", f"{commit}:{path}")

    def commits_touching(self, path: str) -> list[str]:
        """The commits reachable from HEAD that changed a file, oldest first."""
        out = _git(self.root, "log", "--topo-order", "--reverse", "--format=%H", "HEAD", "--", path)
        return out.decode().split() if out else []

    def dirty(self) -> list[str]:
        """Files that differ from HEAD or are untracked (folders of untracked files end in /), from the top folder."""
        out = _git(self.root, "status", "--porcelain=v1", "-z", "--untracked-files=normal") or b""
        fields = out.decode(errors="surrogateescape").split("\0")
        files, skip = [], False
        for field in fields:
            if skip or not field:
                skip = False
                continue
            files.append(field[3:])
            skip = field[0] in "RC"  # the next field is the old name
        return sorted(files)

    def path_of(self, file: Path) -> str:
        """A file's path from the top folder, with forward slashes."""
        return file.resolve().relative_to(self.root.resolve()).as_posix()

    def _text(self, *arguments: str) -> str:
        return (_git(self.root, *arguments) or b"").decode().strip()


def _git(folder: Path, *arguments: str) -> bytes | None:
    """The output of a git command; None when it fails, or when there is no git."""
    environment = {k: v for k, v in os.environ.items() if k not in _POINTING_ELSEWHERE}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "--no-replace-objects", "-C", str(folder), *arguments],
            capture_output=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
