"""The one error of this room."""

from __future__ import annotations


class LogError(ValueError):
    """A log that cannot be parsed at all; its message is one line naming the file and the mend."""
