"""What a rule may know about the copy: which names are there, which are folders, where links lead.

Contract: paths are those the sandbox sees. `Tree.look` answers for one path without touching anything outside the copy;
`Copy.locate` walks a path the way the kernel does, link by link, and refuses the moment it would leave the copy.
"""

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, Protocol

import yaml

Kind = Literal["folder", "file", "link", "missing", "special"]
_MAX_LINKS = 40
_MAX_ENTRIES = 50_000


class LeavesCopyError(Exception):
    """A path leads out of the copy; the text says how."""


class Tree(Protocol):
    """The copy's content. Paths are absolute, without links in their parents, and lie inside `root`."""

    root: str

    def kind(self, path: str) -> Kind: ...

    def link(self, path: str) -> str: ...

    def names(self, path: str) -> list[str]: ...


@dataclass(frozen=True)
class DescribedTree:
    """A tree told by lists, for command files that state which repo their labels are about.

    `links` maps a path inside to where it leads. Names that are not listed count as missing.
    """

    root: str
    folders: frozenset[str]
    files: frozenset[str]
    links: dict[str, str] = field(default_factory=dict)

    def kind(self, path: str) -> Kind:
        inner = posixpath.relpath(path, self.root)
        if inner == "." or inner in self.folders:
            return "folder"
        if inner in self.links:
            return "link"
        return "file" if inner in self.files else "missing"

    def link(self, path: str) -> str:
        return self.links[posixpath.relpath(path, self.root)]

    def names(self, path: str) -> list[str]:
        inner = posixpath.relpath(path, self.root)
        parent = "" if inner == "." else inner
        return sorted(
            posixpath.basename(entry)
            for entry in (*self.folders, *self.files, *self.links)
            if posixpath.dirname(entry) == parent
        )


@dataclass(frozen=True)
class FolderTree:
    """A real folder. `host` is where it lies here, `root` how the sandbox calls it."""

    root: str
    host: Path

    def _here(self, path: str) -> Path:
        return self.host / posixpath.relpath(path, self.root)

    def kind(self, path: str) -> Kind:
        here = self._here(path)
        try:
            if here.is_symlink():
                return "link"
            if here.is_dir():
                return "folder"
            if here.is_file():
                return "file"
            return "special" if here.exists() else "missing"
        except (OSError, ValueError):
            return "missing"

    def link(self, path: str) -> str:
        return os.readlink(self._here(path))  # noqa: PTH115 - the text as written is wanted

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._here(path)))  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return []


@cache
def assumed_tree() -> DescribedTree:
    """The repo that labelled command files speak of when none is given, from data/assumed_repo.yaml."""
    text = resources.files(__package__).joinpath("data/assumed_repo.yaml").read_text(encoding="utf-8")
    told = yaml.safe_load(text)
    return DescribedTree(told["root"], frozenset(told["folders"]), frozenset(told["files"]), dict(told["links"]))


@dataclass(frozen=True)
class Copy:
    """Questions a rule asks about a tree."""

    tree: Tree

    @property
    def root(self) -> str:
        return self.tree.root

    def locate(self, path: str, cwd: str) -> str:
        """Return the real place of `path` seen from `cwd`; raises LeavesCopyError where any part of the way is outside."""
        if "\0" in path:
            raise LeavesCopyError("a path with a NUL")
        return self._walk(path, cwd, _MAX_LINKS)

    def _walk(self, path: str, cwd: str, links_left: int) -> str:
        if path.startswith("/"):
            root = self.root.rstrip("/")
            if path != root and not path.startswith(root + "/"):
                raise LeavesCopyError(f"{path} is outside the repo")
            here, parts = self.root, path[len(root) :].split("/")
        else:
            here, parts = cwd, path.split("/")
        for part in parts:
            if part in ("", "."):
                continue
            if part == "..":
                if here == self.root:
                    raise LeavesCopyError(f"{path} leads out of the repo")
                here = posixpath.dirname(here)
                continue
            entry = posixpath.join(here, part)
            kind = self.tree.kind(entry)
            if kind == "special":
                raise LeavesCopyError(f"{path} is neither file nor folder")
            if kind != "link":
                here = entry
                continue
            if links_left == 0:
                raise LeavesCopyError(f"{path}: too many links")
            try:
                here = self._walk(self.tree.link(entry), here, links_left - 1)
            except (LeavesCopyError, OSError):
                raise LeavesCopyError(f"{path} is a link that leads out of the repo") from None
        return here

    def is_folder(self, path: str) -> bool:
        """True where `path` (already located) is known to be a folder."""
        return self.tree.kind(path) == "folder"

    def exists(self, path: str) -> bool:
        """True where `path` (already located) is known to be there."""
        return self.tree.kind(path) != "missing"

    def names(self, path: str) -> list[str]:
        """Names in the folder `path` (already located)."""
        return self.tree.names(path) if self.is_folder(path) else []

    def below(self, path: str) -> Iterator[tuple[str, Kind]]:
        """Everything below `path` as (path relative to it, kind), links not followed; RuntimeError past a large number."""
        waiting, seen = [(path, "")], 0
        while waiting:
            folder, inner = waiting.pop()
            for name in self.names(folder):
                seen += 1
                if seen > _MAX_ENTRIES:
                    raise RuntimeError("too many files to look through")
                entry, shown = posixpath.join(folder, name), posixpath.join(inner, name)
                kind = self.tree.kind(entry)
                yield shown, kind
                if kind == "folder":
                    waiting.append((entry, shown))

    def leads_out(self, entry: str) -> bool:
        """True where the link at `entry` (its parent located) leads out of the copy."""
        try:
            self.locate(entry, self.root)
        except LeavesCopyError:
            return True
        return False
