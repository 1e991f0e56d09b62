"""Where results are printed: standard output."""

from __future__ import annotations

from typing import Any

from rich.console import Console

PIPED_WIDTH = 140


def results(**options: Any) -> Console:
    """A console on standard output; into a file or a pipe, tables get at least PIPED_WIDTH columns and not a terminal's 80."""
    console = Console(**options)
    return console if console.is_terminal else Console(width=max(console.width, PIPED_WIDTH), **options)
