"""From one simple command to its judge: its row of the table, or a judge of its own for commands with a language."""

import posixpath
import re
from itertools import pairwise

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.judges import JUDGES
from harness.agent.approval.shell.rows import run_row
from harness.agent.approval.shell.state import Outcome

_BUILTINS = {"cd", "jump", "read", "set", "eval", "exec", "command"}
_VERSIONED = re.compile(r"(python|pip)(3(\.\d+)?)?")


def run_call(call: Call) -> Outcome:
    """Judge one simple command; raises AsksError unless it is known to be harmless."""
    name = call.name
    folder, base = posixpath.split(name)
    if folder:
        if folder not in call.shell.table.system_folders:
            raise AsksError(f"runs {name}")
        name = base
    if matched := _VERSIONED.fullmatch(name):
        name = matched[1]
    if name in call.shell.table.version_only and len(call.args) == 1 and call.args[0].text == "--version":
        return Outcome.unchanged(call.state)
    row = call.shell.table.commands.get(name)
    if row is None:
        raise AsksError(f"{name!r} is not in the table" if name else "an empty command name")
    if folder and row.judge in _BUILTINS:
        # As a program it could not do what the builtin does to the shell.
        raise AsksError(f"runs {call.name}")
    many = [word.many for word in call.args]
    if row.judge != "words" and any(a and not b for a, b in pairwise(many)):
        # How many words come before would decide what the later ones mean.
        raise AsksError("words after a list of unknown length")
    call = call.with_args(call.args, name)
    return JUDGES[row.judge](call, row) if row.judge else run_row(call, row)
