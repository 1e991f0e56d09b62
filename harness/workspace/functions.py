"""The test functions of a Python file, found by parsing it; nothing is run."""

from __future__ import annotations

import ast
import fnmatch
from pathlib import PurePosixPath

PATTERNS = ("test_*.py", "*_test.py")


def is_test_file(name: str) -> bool:
    """Whether pytest's own patterns would collect a file of this path."""
    return any(fnmatch.fnmatch(PurePosixPath(name).name, pattern) for pattern in PATTERNS)


def test_functions(text: str) -> dict[str, str]:
    """Test functions and methods by name (`test_a`, `TestB::test_c`), each as normalised source: decorators count, blanks and
    comments do not. A file that does not parse has none.
    """
    try:
        return _functions(ast.parse(text).body, "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _functions(body: list[ast.stmt], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            found[prefix + node.name] = ast.unparse(node)
        elif isinstance(node, ast.ClassDef):
            found |= _functions(node.body, f"{prefix}{node.name}::")
    return found
