"""A workspace that also tells what changed in the copy since it was last asked."""

from __future__ import annotations

from pathlib import Path

from harness.agent.workspace import CommandResult, TreeChange
from harness.workspace.sandbox import LocalWorkspace
from harness.workspace.tree import changes, snapshot


class TrackedWorkspace:
    """The Workspace that the agent gets; the tree at the time of making it is what the first change is measured from."""

    def __init__(self, inner: LocalWorkspace) -> None:
        self._inner = inner
        self.root: Path = inner.root
        self.mount: str = inner.mount
        self._tree = snapshot(self.root)

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        return self._inner.run(command, timeout_s=timeout_s)

    def resolve(self, path: str) -> Path:
        return self._inner.resolve(path)

    def tree_change(self) -> TreeChange | None:
        before, self._tree = self._tree, snapshot(self.root)
        if before.digest == self._tree.digest:
            return None
        return TreeChange(self._tree.digest, changes(before, self._tree, self.root))
