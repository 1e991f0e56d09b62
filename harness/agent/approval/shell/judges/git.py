"""git: subcommands that look, with options from the table; configuration from the command line only where listed."""

import re
from dataclasses import replace
from fnmatch import fnmatchcase

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.options import Arguments, read_arguments
from harness.agent.approval.shell.rows import check_operands, names_below
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import UNKNOWN, Value

_SIGNATURE = re.compile(r"%G|signature")
_LISTING_OPTIONS = {"c", "m", "o", "cached", "modified", "others", "exclude-standard"}


def git(call: Call, row: Command) -> Outcome:
    """Judge the options before the subcommand, then the subcommand by its own row."""
    before = read_arguments(call, row.options, stop_at_operand=True)
    state = call.state
    for name, value in before.options:
        if name == "C" and value is not None:
            places = replace(call, state=state).places(value)
            if not places:
                raise AsksError("git -C with a folder that is not known")
            state = replace(state, cwds=frozenset(places))
    if not before.operands or before.operands[0].text is None:
        raise AsksError("git without a known subcommand")
    words, sub = list(before.operands[1:]), str(before.operands[0].text)
    row_of = row.subcommands.get(sub)
    if row_of is not None and row_of.subcommands:
        if words and words[0].text in row_of.subcommands:
            sub = f"{sub} {words[0].text}"
            row_of = row_of.subcommands[str(words.pop(0).text)]
        elif any(not word.may_be_option for word in words):
            row_of = None
    if row_of is None:
        shown = f"{sub} {words[0].text}" if words and words[0].text and sub in row.subcommands else sub
        raise AsksError(f"git {shown} is not in the table")
    inner = replace(call.with_args(words, f"git {sub}"), state=state)
    arguments = read_arguments(inner, row_of.options)
    for name, value in arguments.options:
        told = name in ("format", "pretty", "sort") and value is not None
        if told and (value.text is None or _SIGNATURE.search(value.text)):
            raise AsksError("a git format that may check signatures")
    check_operands(inner, row_of, arguments)
    output = _tracked(inner, arguments) if sub == "ls-files" and not before.options else UNKNOWN
    return Outcome.unchanged(call.state, output)


def _tracked(call: Call, arguments: Arguments) -> Value:
    if any(name not in _LISTING_OPTIONS for name, _ in arguments.options):
        return UNKNOWN
    patterns = [operand.text for operand in arguments.operands]
    if any(pattern is None or not re.fullmatch(r"\*?[\w.-]*", pattern) for pattern in patterns):
        return UNKNOWN
    if patterns and not all("*" in str(pattern) for pattern in patterns):
        return UNKNOWN
    return names_below(
        call, (), lambda name: not patterns or any(fnmatchcase(name, str(p)) for p in patterns), links=True
    )
