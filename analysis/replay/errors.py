"""Errors of the replay lab: one line each."""

from __future__ import annotations


class ReplayError(ValueError):
    """A run that can't be replayed, or a wrong request; the message names what is wrong and the mend."""
