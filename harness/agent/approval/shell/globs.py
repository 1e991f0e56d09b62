"""Which names of the copy a pattern stands for."""

import re
from fnmatch import fnmatchcase

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.tree import Copy, LeavesCopyError


def expand(copy: Copy, pattern: str, cwd: str) -> list[str]:
    """The names `pattern` matches from `cwd`, sorted, as the shell would give them; asks where it could lead out.

    In `pattern` a character in brackets of its own is that character.
    """
    if "[:" in pattern or "[." in pattern or "[=" in pattern:
        raise AsksError("a character class in a pattern")
    if "[^" in pattern:
        # Not these, to bash; to dash ^ is one of them.
        raise AsksError("a pattern that two shells read differently")
    try:
        return _expand(copy, pattern, cwd)
    except LeavesCopyError as error:
        raise AsksError(str(error)) from None


def _expand(copy: Copy, pattern: str, cwd: str) -> list[str]:
    found = [("", copy.locate(copy.root, cwd) if pattern.startswith("/") else cwd)]
    if pattern.startswith("/"):
        if not pattern.startswith(copy.root + "/"):
            raise AsksError(f"{pattern} is outside the repo")
        found, pattern = [(copy.root + "/", copy.root)], pattern[len(copy.root) + 1 :]
    parts = pattern.split("/")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        found = [
            (text + name + ("" if last else "/"), copy.locate(name, place) if name else place)
            for text, place in found
            for name in _names(copy, part, place)
        ]
    return sorted(text for text, place in found if copy.exists(place))


def _names(copy: Copy, part: str, place: str) -> list[str]:
    literal = re.sub(r"\[([*?\[])\]", r"\1", part)
    if not re.search(r"[*?\[]", re.sub(r"\[[*?\[]\]", "", part)):
        return [literal]
    if part[0] == "." and fnmatchcase("..", part):
        # bash leaves .. out since 5.2; dash does not.
        raise AsksError("a pattern that matches ..")
    return [name for name in copy.names(place) if fnmatchcase(name, part) and (part[0] == "." or name[0] != ".")]
