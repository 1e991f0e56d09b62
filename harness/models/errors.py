"""What the models room raises: one clear line that names what is wrong and the mend."""

from __future__ import annotations


class ModelError(ValueError):
    """A model that cannot be used or fetched. `str(error)` is one line; `exit_code` is what a command ends with."""

    exit_code = 1


class ModelRequestError(ModelError):
    """A wrong request: an unknown name, a missing file, a faulty catalogue. Commands end with 2."""

    exit_code = 2


class SourceFailed(Exception):
    """One source of several did not deliver; the reason is one line. The next source is tried."""
