"""What this room says when it can't go on: always one line."""


class TaskError(ValueError):
    """A task that can't be used; the message names the file and the mend."""


class SandboxError(ValueError):
    """A sandbox that can't be had; the message says what is missing and what can be done."""
