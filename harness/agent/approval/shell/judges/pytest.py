"""The test runners: pytest and unittest, alone or through the interpreter. Only tests may be loaded, nothing else."""

import posixpath
import re
import sys
from collections.abc import Callable

from harness.agent.approval.shell.asks import AsksError
from harness.agent.approval.shell.call import Call
from harness.agent.approval.shell.options import Arguments, read_arguments
from harness.agent.approval.shell.rows import check_operands
from harness.agent.approval.shell.state import Outcome
from harness.agent.approval.shell.table import Command
from harness.agent.approval.shell.values import Word, known

_TEST_FILE = re.compile(r"(test_[^/]*|[^/]*_test)\.py")
_TEST_NAME = re.compile(r"(test_\w+|\w+_test)", re.ASCII)
_TEST_PART = re.compile(r"[Tt]est\w*|\w+(_test|Tests?|TestCase)", re.ASCII)
_DISCOVERY = re.compile(r"test[\w*?]*\.py|\*_test\.py")
_FLAGS = "BEIPsubvOq"
_RUNNERS = ("pytest", "unittest")


def pytest(call: Call, row: Command) -> Outcome:
    """pytest on test files and folders of the copy."""
    arguments = read_arguments(call, row.options)
    for operand in arguments.operands:
        if operand.text is None:
            call.read(operand)
            raise AsksError("pytest on a path that is not known")
        if operand.text.startswith("@"):
            raise AsksError("pytest with arguments from a file")
        path = operand.text.split("::")[0]
        for place in call.places(known(path)):
            _check_test_path(call, place)
    return Outcome.unchanged(call.state)


def _check_test_path(call: Call, place: str) -> None:
    name = posixpath.basename(place)
    if not _TEST_FILE.fullmatch(name) and "." in name and not call.shell.copy.is_folder(place):
        raise AsksError(f"{name} is not a test file by its name")


def python(call: Call, row: Command) -> Outcome:
    """The interpreter, only to run a listed module with -m."""
    words = list(call.args)
    while words:
        word = words.pop(0)
        if word.text is None:
            break
        if word.text in ("-V", "-VV", "--version") and not words:
            return Outcome.unchanged(call.state)
        if word.text in ("-W", "-X") and words:
            if not re.fullmatch(r"ignore|error|default|dev|utf8", words.pop(0).text or ""):
                break
            continue
        matched = re.fullmatch(rf"-([{_FLAGS}]*)(?:m(.*))?", word.text, re.DOTALL)
        if not matched or word.text == "-":
            break
        if matched[2] is None:
            continue
        module = known(matched[2]) if matched[2] else (words.pop(0) if words else None)
        return _module(call, row, module, words)
    raise AsksError("python runs code that is not a test")


def _module(call: Call, row: Command, module: Word | None, words: list[Word]) -> Outcome:
    name = module.text if module else None
    inner = row.subcommands.get(name or "")
    if name is None or inner is None:
        raise AsksError(f"python -m {name or '?'} is not in the table")
    top = name.split(".")[0]
    # The folder comes before the library: a test run loads the repo's code anyway, the other modules must load none of it.
    taken = {top} if name in _RUNNERS else {top, *sys.stdlib_module_names}
    for cwd in call.state.cwds:
        own = sorted(taken & {found.split(".")[0] for found in call.shell.copy.names(cwd)})
        if own:
            raise AsksError(f"the repo has a {own[0]} of its own")
    return _MODULES[name](call.with_args(words, name), inner)


def _unittest(call: Call, row: Command) -> Outcome:
    if call.args and call.args[0].text == "discover":
        return _discover(call.with_args(call.args[1:]), row.subcommands["discover"])
    arguments = read_arguments(call, row.options)
    for operand in arguments.operands:
        _check_unittest_name(call, operand)
    return Outcome.unchanged(call.state)


def _discover(call: Call, row: Command) -> Outcome:
    arguments = read_arguments(call, row.options)
    check_operands(call, row, arguments)
    for name in ("p", "pattern"):
        value = arguments.value(name)
        if value is not None and not _DISCOVERY.fullmatch(value.text or ""):
            raise AsksError("unittest discovers files that are not tests by their name")
    return Outcome.unchanged(call.state)


def _check_unittest_name(call: Call, operand: Word) -> None:
    text = operand.text
    if text is None:
        raise AsksError("unittest of a name that is not known")
    if text.endswith(".py"):
        for place in call.places(operand):
            _check_test_path(call, place)
        return
    parts = text.split(".")
    if not all(re.fullmatch(r"\w+", part, re.ASCII) for part in parts):
        raise AsksError("unittest of an unusual name")
    first = next((index for index, part in enumerate(parts) if _TEST_NAME.fullmatch(part)), len(parts))
    # unittest calls whatever it finds under a dotted name, so only modules named like tests count.
    if parts[0] == "test" or not (any(_TEST_NAME.fullmatch(part) for part in parts) or parts == ["tests"]):
        raise AsksError(f"{text} is not a test by its name")
    if not all(_TEST_PART.fullmatch(part) for part in parts[first:]):
        raise AsksError(f"{text} is not a test by its name")


def _row_only(call: Call, row: Command) -> Outcome:
    arguments: Arguments = read_arguments(call, row.options)
    check_operands(call, row, arguments)
    return Outcome.unchanged(call.state)


_MODULES: dict[str, Callable[[Call, Command], Outcome]] = {
    "pytest": pytest,
    "unittest": _unittest,
    "json.tool": _row_only,
    "py_compile": _row_only,
    "tabnanny": _row_only,
}
