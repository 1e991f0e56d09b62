"""Filters whose first operand is a program: sed, awk, jq."""

import re

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.judges import awk_program, sed_script
from harness.agent.approval.shell.options import Arguments, read_arguments
from harness.agent.approval.shell.rows import check_operands
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import Word

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Between $ and a name jq passes over blanks and comments, so the name alone is looked for.
_JQ_REFUSED = re.compile(
    r"(?<![\w$.])(env|import|include|modulemeta|get_search_list|input_filename)\b|(?<![\w.])ENV\b|__prog"
)


def sed(call: Call, row: Command) -> Outcome:
    """sed whose scripts only edit the stream."""
    arguments = read_arguments(call, row.options)
    scripts = [value for name, value in arguments.options if name in ("e", "expression")]
    if not scripts:
        scripts = [_first(call, arguments)]
    sed_script.check("\n".join(_text(call, script) for script in scripts))
    check_operands(call, row, arguments)
    return Outcome.unchanged(call.state)


def awk(call: Call, row: Command) -> Outcome:
    """awk whose program neither opens nor runs anything; operands are files or assignments."""
    arguments = read_arguments(call, row.options, stop_at_operand=True)
    awk_program.check(_text(call, _first(call, arguments)))
    for operand in arguments.operands[1:]:
        if operand.text is None or not _ASSIGNMENT.fullmatch(operand.text):
            call.read(operand)
    return Outcome.unchanged(call.state)


def jq(call: Call, row: Command) -> Outcome:
    """jq whose filter reads neither the environment nor modules."""
    arguments = read_arguments(call, row.options)
    if _JQ_REFUSED.search(_text(call, _first(call, arguments))):
        raise AsksError("a jq filter that reads more than its input")
    check_operands(call, row, arguments)
    return Outcome.unchanged(call.state)


def _first(call: Call, arguments: Arguments) -> Word:
    if not arguments.operands:
        raise AsksError(f"{call.name} without a program")
    return arguments.operands[0]


def _text(call: Call, word: Word | None) -> str:
    if word is None or word.text is None:
        raise AsksError(f"a {call.name} program that is not known")
    return word.text
