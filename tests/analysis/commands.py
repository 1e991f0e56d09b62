"""The command line as a user has it, in this process."""

from __future__ import annotations

import pytest

from harness.cli.main import main


def command(*arguments: str) -> int:
    """The exit code of `calledshot` with these arguments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["calledshot", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)
