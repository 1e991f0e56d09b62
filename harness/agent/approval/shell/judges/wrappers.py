"""Commands that run another command: opened, and what they would run is judged."""

import re

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.options import read_arguments
from harness.agent.approval.shell.state import Outcome, State
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import Word, known

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL | re.ASCII)
_SHELL_FLAGS = re.compile(r"-[eulx]*c[eulx]*")
_NAME = re.compile(r"[A-Za-z0-9_.+-]+")


def wrapper(call: Call, row: Command) -> Outcome:
    """A wrapper with `opens` operands of its own before the command."""
    arguments = read_arguments(call, row.options, stop_at_operand=True)
    own = row.opens or 0
    for operand in arguments.operands[:own]:
        if operand.text is None or not re.fullmatch(r"[\d.]+[smhd]?", operand.text):
            raise AsksError(f"{call.name} with an unusual operand")
    return _inner(call, list(arguments.operands[own:]))


def env(call: Call, row: Command) -> Outcome:
    """env with listed settings before a command; alone it prints the environment."""
    arguments = read_arguments(call, row.options, stop_at_operand=True)
    words = list(arguments.operands)
    while words and (matched := _ASSIGNMENT.fullmatch(words[0].text or words[0].prefix)):
        pattern = call.shell.table.variables.get(matched[1])
        if words[0].text is None or pattern is None or not pattern.fullmatch(matched[2]):
            raise AsksError(f"sets {matched[1]} for a command")
        words.pop(0)
    if not words:
        raise AsksError("env prints the environment")
    return _inner(call, words)


def command(call: Call, row: Command) -> Outcome:
    """command: -v and -V look a name up, otherwise the rest is run."""
    if call.args and call.args[0].text in ("-v", "-V"):
        for word in call.args[1:]:
            if not _NAME.fullmatch(word.text or ""):
                raise AsksError("command -v of something that is not a plain name")
        return Outcome.unchanged(call.state)
    return wrapper(call, row)


def nohup(call: Call, row: Command) -> Outcome:
    """nohup writes nohup.out unless its output goes elsewhere."""
    outcome = wrapper(call, row)
    if not call.kept:
        raise AsksError("nohup may write nohup.out")
    return outcome


def xargs(call: Call, row: Command) -> Outcome:
    """xargs: the command is judged with the names that come through the pipe, or with words that are not known."""
    arguments = read_arguments(call, row.options, stop_at_operand=True)
    stdin = call.state.stdin
    arriving = Word(None, "", stdin.names_from if stdin is not None else None, many=True)
    words = list(arguments.operands) or [known("echo")]
    mark = next((value.text for name, value in arguments.options if name in ("I", "replace") and value), None)
    if arguments.has("I"):
        if not mark:
            raise AsksError("xargs with an unusual mark")
        words = [_filled(word, mark, arriving) for word in words]
    else:
        words.append(arriving)
    # The command itself reads the null device.
    return Outcome.unchanged(call.state, _inner(call, words, State(call.state.cwds)).output)


def _filled(word: Word, mark: str, arriving: Word) -> Word:
    if word.text is None or mark not in word.text:
        return word
    return arriving if word.text == mark else Word(None, word.text.split(mark)[0])


def shell(call: Call, row: Command) -> Outcome:
    """Another shell with -c: its script is judged like this one, in a state of its own."""
    words = list(call.args)
    if len(words) < 2 or not _SHELL_FLAGS.fullmatch(words[0].text or ""):
        raise AsksError(f"{call.name} runs a script")
    script = words[1].text
    if script is None:
        raise AsksError(f"{call.name} -c with a script that is not known")
    call.shell.run_text(script, State(call.state.cwds, stdin=call.state.stdin))
    return Outcome.unchanged(call.state)


def evaluate(call: Call, row: Command) -> Outcome:
    """eval: its words are joined and judged as a script of this shell."""
    if any(word.text is None for word in call.args):
        raise AsksError("eval of text that is not known")
    return call.shell.run_text(" ".join(str(word.text) for word in call.args), call.state)


def execute(call: Call, row: Command) -> Outcome:
    """exec: the command takes the shell's place; without one, redirections of the shell itself were judged already."""
    if not call.args:
        raise AsksError("exec without a command")
    return wrapper(call, row)


def _inner(call: Call, words: list[Word], state: State | None = None) -> Outcome:
    outcome = call.shell.run_words(words, state or call.state, kept=call.kept)
    # Behind some wrappers a builtin still changes this shell, behind others it does not: what holds after is in doubt.
    if outcome.after != (state or call.state):
        raise AsksError(f"{call.name} with a command that changes the shell")
    return Outcome.unchanged(call.state, outcome.output)
