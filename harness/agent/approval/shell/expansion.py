"""What $name, $(...), `...`, <(...), $((...)) and patterns give in one state of a script."""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.globs import expand
from harness.agent.approval.shell.nodes import Node
from harness.agent.approval.shell.state import State
from harness.agent.approval.shell.values import NUMBER, UNKNOWN, Dialect, Value

if TYPE_CHECKING:
    from harness.agent.approval.shell.script import Script

_PIPE = "/dev/fd/63"
_NUMBER = re.compile(r"\d+")
_OPERATORS = {"$((", "))", "+", "-", "*", "**", "/", "%", "(", ")", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "!"}


@dataclass(frozen=True)
class Expansion:
    """An Expander (words.py) for one state."""

    script: "Script"
    state: State

    @property
    def dialect(self) -> Dialect:
        return self.script.dialect

    def variable(self, name: str) -> Value:
        """The value of a variable the script set; one of the environment asks, since it may hold a secret."""
        if name == "_":
            raise AsksError("$_, which the shell itself keeps changing")
        if name in self.state.variables:
            return self.state.variables[name]
        if name == "PWD" and len(self.state.cwds) == 1:
            return Value(text=next(iter(self.state.cwds)))
        raise AsksError(f"${name}, which the command does not set")

    def nested(self, node: Node) -> Value:
        """The value of a substitution."""
        if node.type == "arithmetic_expansion":
            self._arithmetic(node)
            return NUMBER
        text = node.text
        if text.startswith("`") and "\\" in text:
            raise AsksError("a backslash inside backquotes")
        reads = text.startswith(">(")
        inner = replace(self.state, stdin=UNKNOWN) if reads else self.state
        outcome = self.script.sequence(node.children, inner, kept=True)
        return Value(text=_PIPE) if node.type == "process_substitution" else outcome.output

    def glob(self, pattern: str) -> list[str]:
        """The names `pattern` matches; asks when it depends on a folder that is not certain."""
        found = {tuple(expand(self.script.copy, pattern, cwd)) for cwd in self.state.cwds}
        if len(found) != 1:
            raise AsksError("a pattern in a folder that is not certain")
        return list(found.pop())

    def _arithmetic(self, node: Node) -> None:
        # A value that is not a plain number could hold an expression that runs a command.
        for child in node.children:
            if child.type in ("command_substitution", "simple_expansion", "variable_name"):
                name = child.text.lstrip("$")
                value = self.nested(child) if child.type == "command_substitution" else self.variable(name)
                if not value.number and not _NUMBER.fullmatch(value.text or ""):
                    raise AsksError("arithmetic with a value that is not known")
            elif child.type in ("binary_expression", "unary_expression", "parenthesized_expression"):
                self._arithmetic(child)
            elif child.type == "number":
                if not _NUMBER.fullmatch(child.text):
                    raise AsksError("unusual arithmetic")
            elif child.type not in _OPERATORS:
                raise AsksError("unusual arithmetic")
