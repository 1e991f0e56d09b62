"""What goes wrong with a model server outside of a request."""

from __future__ import annotations


class ServingError(ValueError):
    """A server that can't be had as asked; the message is one line that names what is wrong and the mend."""
