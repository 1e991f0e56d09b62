"""The one way a judge says no."""


class AsksError(Exception):
    """The command asks; the text is the reason, a few words."""
