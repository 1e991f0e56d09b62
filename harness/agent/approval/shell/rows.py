"""Commands whose table row says everything: options, operands, what comes out."""

import re
from collections.abc import Callable

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import ODD_NAME, Call
from harness.agent.approval.shell.options import Arguments, check_value, read_arguments
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import COUNT, UNKNOWN, Value, Word

_NAME = re.compile(r"[A-Za-z0-9_.+-]+")


def run_row(call: Call, row: Command) -> Outcome:
    """Judge a call by its row alone."""
    arguments = read_arguments(call, row.options)
    files = check_operands(call, row, arguments)
    return Outcome.unchanged(call.state, output_of(call, row, arguments, files))


def check_operands(call: Call, row: Command, arguments: Arguments) -> tuple[Word, ...]:
    """Check the operands by the row; return those that are paths."""
    operands = arguments.operands
    if row.most is not None and (len(operands) > row.most or any(operand.many for operand in operands)):
        raise AsksError(f"{call.name} with more than {row.most} operands")
    if len(operands) < row.least:
        raise AsksError(f"{call.name} with too few operands")
    if row.operands == "none" and operands:
        raise AsksError(f"{call.name} with operands")
    if row.operands == "text read" and not arguments.has(*row.unless):
        operands = operands[1:]
    if row.operands in ("read", "text read"):
        for operand in operands:
            call.read(operand)
        if arguments.has(*row.follow):
            call.no_links_below(operands)
        return operands
    for operand in operands:
        if row.operands == "number":
            check_value(call, "number", operand, "it")
        elif row.operands == "name" and (operand.text is None or not _NAME.fullmatch(operand.text)):
            raise AsksError(f"{call.name} of something that is not a plain name")
        elif row.operands == "date" and (operand.text is None or not operand.text.startswith("+")):
            raise AsksError("date with an operand that may set the clock")
    return ()


def output_of(call: Call, row: Command, arguments: Arguments, files: tuple[Word, ...]) -> Value:
    """What the command writes: a number, names that came in by the pipe, or anything."""
    if row.output == "number" and not files and len(arguments.options) == 1:
        return COUNT
    stdin = call.state.stdin
    passes = row.through is not None and all(name in row.through for name, _ in arguments.options)
    if passes and not files and stdin is not None and stdin.names_from is not None:
        return stdin
    return UNKNOWN


def names_below(call: Call, starts: tuple[Word, ...], keeps: Callable[[str], bool], *, links: bool) -> Value:
    """The value of a list of names found below `starts` (default: here), if none of them is odd or leads out.

    `keeps` tells from a base name whether it may be listed; `links`: links may be listed as well.
    """
    for word in starts:
        if word.text is None or ODD_NAME.search(word.text):
            return UNKNOWN
    for place in call.folders(starts):
        for inner, kind in call.below(place):
            if not keeps(inner.rsplit("/", 1)[-1]):
                continue
            if ODD_NAME.search(inner) or (links and kind == "link" and call.shell.copy.leads_out(f"{place}/{inner}")):
                return UNKNOWN
    return Value(names_from=call.state.cwds)
