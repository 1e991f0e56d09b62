"""Searching and listing, whose output may be a list of names: grep, rg, ls."""

from dataclasses import replace

from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.options import Arguments, read_arguments
from harness.agent.approval.shell.rows import check_operands, names_below, output_of
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import COUNT, Value, Word

_RECURSIVE = ("r", "R", "recursive", "dereference-recursive")
_NAMES_ONLY = ("l", "L", "files-with-matches", "files-without-match")


def grep(call: Call, row: Command) -> Outcome:
    """grep: counts are numbers, -l gives names."""
    arguments = read_arguments(call, row.options)
    files = check_operands(call, row, arguments)
    if arguments.has("c", "count") and len(files) < 2 and not arguments.has(*_RECURSIVE, "H", *_NAMES_ONLY, "Z"):
        return Outcome.unchanged(call.state, COUNT)
    if arguments.has(*_NAMES_ONLY):
        return Outcome.unchanged(call.state, _listed(call, arguments, files))
    return Outcome.unchanged(call.state, output_of(call, row, arguments, files))


def rg(call: Call, row: Command) -> Outcome:
    """ripgrep: --files has no pattern, -l and --files give names."""
    arguments = read_arguments(call, row.options)
    if arguments.has("files"):
        row = replace(row, operands="read")
    files = check_operands(call, row, arguments)
    if arguments.has("files", *_NAMES_ONLY):
        return Outcome.unchanged(call.state, _listed(call, arguments, files))
    return Outcome.unchanged(call.state, output_of(call, row, arguments, files))


def ls(call: Call, row: Command) -> Outcome:
    """ls: the bare names of the current folder are names."""
    arguments = read_arguments(call, row.options)
    files = check_operands(call, row, arguments)
    plain = all(name in ("1", "t", "r", "S", "A") for name, _ in arguments.options)
    if plain and not files:
        return Outcome.unchanged(call.state, names_below(call, (), lambda name: True, links=True))
    return Outcome.unchanged(call.state)


def _listed(call: Call, arguments: Arguments, files: tuple[Word, ...]) -> Value:
    # A link given as a start was located already; links further down are not followed, so none is listed.
    return names_below(call, files, lambda name: True, links=not arguments.has("r", "recursive", "files"))
