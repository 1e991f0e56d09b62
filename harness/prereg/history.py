"""What git can say about a study: commits, ancestry, files as they were, and what is not committed.

Everything goes through the `git` program, reading only. Replacement objects are ignored, and variables that would point git
at another repository are taken out of its environment.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
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
    """A repository with at least one commit. root: its top folder.

    What a commit's hash fixes for good (its files, its ancestors) is asked of git once.
    """

    root: Path
    _seen: dict[tuple[str, ...], bytes | None] = field(default_factory=dict, compare=False, repr=False)

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
        return self._fixed("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def is_ancestor(self, older: str, newer: str) -> bool:
        """True when `older` is `newer` or one of its ancestors. In a shallow clone False can be wrong, True can't."""
        return self._fixed("merge-base", "--is-ancestor", older, newer) is not None

    def file_at(self, commit: str, path: str) -> bytes | None:
        """The content of a file (path from the top folder) in a commit; None when it is not there."""
        return self._fixed("show", f"{commit}:{path}")

    def commits_touching(self, path: str) -> list[str]:
        """The commits reachable from HEAD that changed a file, oldest first."""
        out = _git(self.root, "log", "--topo-order", "--reverse", "--format=%H", "HEAD", "--", path)
        return out.decode().split() if out else []

    def dirty(self) -> list[str]:
        """Files that differ from HEAD or are untracked (folders of untracked files end in /), from the top folder."""
        out = _git(self.root, "status", "--porcelain=v1", "-z", "--untracked-files=normal") or b""
        entries = out.decode(errors="surrogateescape").split("\0")
        files, skip = [], False
        for entry in entries:
            if skip or not entry:
                skip = False
                continue
            files.append(entry[3:])
            skip = entry[0] in "RC"  # the next field is the old name
        return sorted(files)

    def path_of(self, file: Path) -> str:
        """A file's path from the top folder, with forward slashes."""
        return file.resolve().relative_to(self.root.resolve()).as_posix()

    def _fixed(self, *arguments: str) -> bytes | None:
        if arguments not in self._seen:
            self._seen[arguments] = _git(self.root, *arguments)
        return self._seen[arguments]

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
