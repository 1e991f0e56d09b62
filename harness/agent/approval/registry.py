"""Rules by name."""

from pathlib import Path

from harness.agent.approval.parsed import Parsed
from harness.agent.approval.published import FIRST, SECOND_AS_RUN, SECOND_PRINTED, AskAll
from harness.agent.approval.tree import FolderTree
from harness.agent.approval.types import Rule

_PUBLISHED: dict[str, Rule] = {r.name: r for r in (AskAll(), FIRST, SECOND_AS_RUN, SECOND_PRINTED)}
RULES = (*_PUBLISHED, "parsed")


def rule(name: str, *, root: str | Path | None = None, host: Path | None = None) -> Rule:
    """Return the rule called `name`; ValueError names the known ones.

    `root` is the copy's folder as the sandbox sees it, `host` where it lies here (default: `root`). Only `parsed` looks at
    it; without a root it judges against the repo that labelled command files assume (data/assumed_repo.yaml).
    """
    if name in _PUBLISHED:
        return _PUBLISHED[name]
    if name != "parsed":
        raise ValueError(f"no approval rule named {name!r}; known: {', '.join(RULES)}")
    if root is None:
        return Parsed()
    return Parsed(FolderTree(str(root).rstrip("/") or "/", host or Path(root)))
