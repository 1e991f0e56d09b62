"""glob and grep over the copy, without a shell."""

from __future__ import annotations

import fnmatch
import re

from harness.agent.tools.base import Tool, ToolError
from harness.agent.tools.files import read_text, visible_files
from harness.agent.workspace import Workspace

MOST_LINES = 200
LONGEST_LINE = 300


def matches(path: str, pattern: str) -> bool:
    """`**/` also stands for no folder at all; a pattern without a slash is looked for in every folder."""
    if "/" not in pattern:
        return fnmatch.fnmatchcase(path.rsplit("/", 1)[-1], pattern)
    return fnmatch.fnmatchcase(path, pattern) or (
        "**/" in pattern and fnmatch.fnmatchcase(path, pattern.replace("**/", ""))
    )


def _capped(lines: list[str], what: str) -> str:
    if not lines:
        return f"no {what}"
    more = len(lines) - MOST_LINES
    return "\n".join(lines[:MOST_LINES] + ([f"[{more} more {what} not shown]"] if more > 0 else []))


def search_tools(workspace: Workspace) -> list[Tool]:
    def glob(pattern: str) -> str:
        return _capped([p for p in visible_files(workspace.root) if matches(p, pattern)], "files")

    def grep(pattern: str, files: str = "*") -> str:
        try:
            wanted = re.compile(pattern)
        except re.error as e:
            raise ToolError(f"not a regular expression: {e}") from e
        found = []
        for path in visible_files(workspace.root):
            if not matches(path, files):
                continue
            try:
                text = read_text(workspace, path)
            except ToolError:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if wanted.search(line):
                    found.append(f"{path}:{number}:{line[:LONGEST_LINE]}")
        return _capped(found, "lines")

    pattern = {"type": "string", "description": "file pattern such as *.py or src/**/*.py"}
    expression = {"type": "string", "description": "a regular expression (Python's syntax)"}
    return [
        Tool("glob", "Find files by name.", {"pattern": pattern}, glob),
        Tool(
            "grep",
            "Find lines by a regular expression.",
            {"pattern": expression, "files": pattern},
            grep,
            optional=frozenset({"files"}),
        ),
    ]
