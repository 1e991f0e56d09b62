"""Judges for commands with a language of their own, by the name the table uses."""

from collections.abc import Callable, Mapping

from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.judges import builtins, filters, find, git, pytest, search, wrappers
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command

JUDGES: Mapping[str, Callable[[Call, Command], Outcome]] = {
    "cd": builtins.cd,
    "jump": builtins.jump,
    "read": builtins.read,
    "set": builtins.set_options,
    "test": builtins.test,
    "words": builtins.words,
    "printf": builtins.printf,
    "sed": filters.sed,
    "awk": filters.awk,
    "jq": filters.jq,
    "grep": search.grep,
    "rg": search.rg,
    "ls": search.ls,
    "find": find.find,
    "git": git.git,
    "pytest": pytest.pytest,
    "python": pytest.python,
    "env": wrappers.env,
    "wrapper": wrappers.wrapper,
    "command": wrappers.command,
    "nohup": wrappers.nohup,
    "xargs": wrappers.xargs,
    "shell": wrappers.shell,
    "eval": wrappers.evaluate,
    "exec": wrappers.execute,
}
