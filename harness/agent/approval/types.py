"""What a rule is: it looks at one shell command and says whether it runs unasked.

Contract: `judge` never raises for any string, touches nothing but file names and links of the copy, and never runs anything.
`name` and `version` together identify what was in force in a run; a rule whose verdicts change gets a new version.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Verdict:
    """`runs`: executed without asking; otherwise a person is asked. `reason`: why, in a few words."""

    runs: bool
    reason: str


class Rule(Protocol):
    """An approval rule, an experimental factor."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def judge(self, command: str) -> Verdict:
        """Return the verdict on `command`, the text handed to the shell."""
        ...
