"""Where a script stands between two commands: possible folders, variables it set, what flows into the next command."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from harness.agent.approval.shell.values import UNKNOWN, Value


@dataclass(frozen=True)
class State:
    """`cwds`: every folder the shell may be in. `variables`: those the script set. `stdin`: what can be read from
    standard input, None where it is empty.
    """

    cwds: frozenset[str]
    variables: Mapping[str, Value] = field(default_factory=dict)
    stdin: Value | None = None

    def with_variable(self, name: str, value: Value) -> Self:
        """The state after an assignment."""
        return replace(self, variables={**self.variables, name: value})

    def merged(self, other: Self) -> Self:
        """The state after a fork of which either branch may have been taken."""
        if self == other:
            return self
        # A name set in one branch only may still hold the environment's value: it stays unset.
        both = self.variables.keys() & other.variables.keys()
        variables = {
            name: self.variables[name] if self.variables[name] == other.variables[name] else UNKNOWN for name in both
        }
        return replace(self, cwds=self.cwds | other.cwds, variables=variables)


@dataclass(frozen=True)
class Outcome:
    """How a command may leave the script: `ok` after success, `fail` after failure; `certain`: it cannot fail.

    `output` is what it writes to standard output.
    """

    ok: State
    fail: State
    certain: bool = False
    output: Value = UNKNOWN

    @property
    def after(self) -> State:
        """The state where nothing depends on success."""
        return self.ok if self.certain else self.ok.merged(self.fail)

    @classmethod
    def unchanged(cls, state: State, output: Value = UNKNOWN) -> Self:
        """The outcome of a command that changes nothing in the shell."""
        return cls(state, state, output=output)
