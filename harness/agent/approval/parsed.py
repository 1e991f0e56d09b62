"""The rule `parsed`: the command is read as the shells read it, and runs only if every part of it is known to look.

Contract: verdicts come from a syntax tree (tree-sitter-bash), a table of commands (data/table.yaml) and the names and
links of the copy. A command is read twice where bash and dash would read it differently, and must pass both ways. A parse
error and everything unknown asks. The rule is about convenience: the sandbox is the guard.
"""

from dataclasses import dataclass, field

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.script import Script
from harness.agent.approval.shell.state import State
from harness.agent.approval.shell.table import Table, table
from harness.agent.approval.shell.values import Dialect
from harness.agent.approval.tree import Copy, Tree, assumed_tree
from harness.agent.approval.types import Verdict

UNREADABLE = "the rule failed on this command"
_DIFFERENT = ("{", "$'", '$"')


@dataclass(frozen=True)
class Parsed:
    """Judges commands proposed in `tree`, the copy as the sandbox sees it; the first folder is its root."""

    tree: Tree = field(default_factory=assumed_tree)
    table: Table = field(default_factory=table)
    name: str = "parsed"
    version: str = "3"

    def judge(self, command: str) -> Verdict:
        """Run only what is known to read inside the copy or to run its tests."""
        dialects: tuple[Dialect, ...] = ("bash", "dash") if any(m in command for m in _DIFFERENT) else ("bash",)
        if not command.strip():
            return Verdict(False, "no command")
        try:
            for dialect in dialects:
                start = State(frozenset({self.tree.root}))
                Script(Copy(self.tree), self.table, dialect).run_text(command, start)
        except AsksError as asks:
            return Verdict(False, str(asks))
        except Exception as error:
            # A slip in this rule must not let a command through, nor end a run.
            return Verdict(False, f"{UNREADABLE} ({type(error).__name__})")
        return Verdict(True, "reads inside the repo or runs its tests")
