"""What changed in a copy while somebody else's program is at work on it."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from harness.agent.workspace import TreeChange
from harness.workspace.tree import Tree, changes, snapshot

TRIES = 3


class WatchedTree:
    """Looks at `root` now and then. A look that meets a file in motion is repeated; what it could not get, the next look finds."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tree: Tree = snapshot(root)

    def change(self) -> TreeChange | None:
        """What changed since the last look; None when nothing did, or nothing would hold still."""
        for _ in range(TRIES):
            try:
                now = snapshot(self._root)
                found = changes(self._tree, now, self._root) if now.digest != self._tree.digest else []
            except OSError:
                continue
            if all(map(_whole, found)):
                changed, self._tree = now.digest != self._tree.digest, now
                return TreeChange(now.digest, found) if changed else None
        return None


def _whole(change: dict[str, Any]) -> bool:
    """Whether the content that was read is the content whose digest was taken."""
    if change["text"] is not None:
        data = change["text"].encode("utf-8", "surrogateescape")
    elif change["base64"] is not None:
        data = base64.b64decode(change["base64"])
    else:
        return True
    return bool(change.get("link")) or hashlib.sha256(data).hexdigest() == change["sha256"]
