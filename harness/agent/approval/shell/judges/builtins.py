"""Builtins that change the shell's own state, and the tests."""

import posixpath
import re
from dataclasses import replace

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.options import read_arguments
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import UNKNOWN

_STRING_TESTS = {"-n", "-z", "=", "==", "!=", "=~", "!", "-a", "-o", "(", ")"}
_NUMBER_TESTS = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
_FILE_TESTS = {f"-{letter}" for letter in "bcdefghLkprsSuwxOGN"} | {"-nt", "-ot", "-ef"}
_SET = re.compile(r"[-+][eufx]*(o)?")
_SET_NAMES = {"errexit", "nounset", "pipefail", "xtrace", "noglob"}
_PRINTF = re.compile(r"(?:[^%\\]|%[-+ #0-9.]*[sdiouxXeEfgGcbq%]|\\[nt\\\"ra0e'])*")


def cd(call: Call, row: Command) -> Outcome:
    """Change the folder, inside the copy; later paths are seen from there."""
    arguments = read_arguments(call, row.options)
    if len(arguments.operands) != 1:
        raise AsksError("cd to the home folder" if not arguments.operands else "cd with more than one folder")
    target = arguments.operands[0]
    if target.text in ("-", ""):
        raise AsksError("cd to a folder that is not known")
    places = call.places(target)
    assert target.text is not None or not places
    if not places:
        raise AsksError("cd to a folder that is not known")
    # The shell keeps the way it came (.. undoes a link), the kernel does not: both must be the same place.
    for place, cwd in zip(places, sorted(call.state.cwds), strict=True):
        if posixpath.normpath(posixpath.join(cwd, target.text or "")) != place:
            raise AsksError("cd through a link")
    certain = all(call.shell.copy.is_folder(place) for place in places)
    return Outcome(replace(call.state, cwds=frozenset(places)), call.state, certain=certain)


def jump(call: Call, row: Command) -> Outcome:
    """Leave a loop or start its next round (one level only)."""
    if call.args:
        raise AsksError(f"{call.name} over several loops")
    call.shell.jump(call.state)
    return Outcome.unchanged(call.state)


def read(call: Call, row: Command) -> Outcome:
    """Read a line into plain variables; names that come through the pipe stay names."""
    arguments = read_arguments(call, row.options)
    stdin = call.state.stdin
    value = stdin if stdin is not None and len(arguments.operands) == 1 else UNKNOWN
    state = call.state
    for operand in arguments.operands:
        if operand.text is None or not call.shell.table.plain_variables.fullmatch(operand.text):
            raise AsksError("read into an unusual variable")
        state = state.with_variable(operand.text, value if value.names_from else UNKNOWN)
    if not arguments.operands:
        raise AsksError("read without a variable")
    # At the end of input a variable is left empty, which is no name: "" as a path is harmless.
    return Outcome(state, state)


def set_options(call: Call, row: Command) -> Outcome:
    """Shell options that make a script stricter or chattier."""
    words = list(call.args)
    if not words:
        raise AsksError("set prints the environment")
    while words:
        word = words.pop(0)
        matched = _SET.fullmatch(word.text or "")
        if not matched or len(word.text or "") < 2:
            raise AsksError("set with something that is not in the table")
        if matched[1] and (not words or words.pop(0).text not in _SET_NAMES):
            raise AsksError("set -o with something that is not in the table")
    return Outcome.unchanged(call.state)


def test(call: Call, row: Command) -> Outcome:
    """test, [ and [[: every word that could be a path must lie inside the copy."""
    words = list(call.args)
    numeric = any(word.text in _NUMBER_TESTS for word in words)
    # Of three words a comparison in the middle goes first, whatever stands before it.
    compared = len(words) == 3 and words[1].text in ("=", "==", "!=")
    for before, word in zip([None, *words], words, strict=False):
        if word.text in _STRING_TESTS | _NUMBER_TESTS | _FILE_TESTS:
            continue
        if word.text is None:
            after_file_test = before is not None and before.text in _FILE_TESTS
            if after_file_test and word.names_from != call.state.cwds:
                raise AsksError("a test of a path that is not known")
            if numeric and call.name == "[[" and not word.number:
                # [[ evaluates its numbers as expressions.
                raise AsksError("a number that is not known")
            if (
                not (after_file_test or compared)
                and word.may_be_option
                and (before is None or before.text in ("!", "-a", "-o", "("))
            ):
                raise AsksError("a word that may be an option")
        elif word.text.startswith("-") and not re.fullmatch(r"-\d*", word.text):
            raise AsksError(f"test {word.text} is not in the table")
        elif numeric and call.name == "[[" and not re.fullmatch(r"-?\d+", word.text):
            raise AsksError("a number that is not known")
        else:
            call.read(word)
    return Outcome.unchanged(call.state)


def printf(call: Call, row: Command) -> Outcome:
    """printf with a format that cannot assign a variable."""
    if not call.args or call.args[0].text is None or not _PRINTF.fullmatch(call.args[0].text):
        raise AsksError("printf with an unusual format")
    if call.args[0].text.startswith("-"):
        raise AsksError("printf with an option")
    return Outcome.unchanged(call.state)


def words(call: Call, row: Command) -> Outcome:
    """Commands to which every word is plain text: no option of theirs reads or writes."""
    return Outcome.unchanged(call.state)
