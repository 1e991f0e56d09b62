"""Finish gates: when "done" is believed.

`none` believes it. `tests_pass` (published, rules.md section 4) runs pytest and believes exit code 0; its known hole is that
it also passes on an unchanged repo. `evidence` asks for more: something changed, the tests ran after the last edit and
passed, and there are new tests when the task asks for them.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import Protocol

from harness.agent.files_below import files_below, read_plain
from harness.agent.guard import PATTERN, test_functions
from harness.agent.tools.shell import joined
from harness.agent.workspace import CommandResult, Workspace
from harness.settings import FinishSettings

PYTEST = "python -m pytest -q"
HANDED_BACK = "pytest fails, so the task is not done yet:\n"
_RUNS_TESTS = re.compile(r"\b(pytest|py\.test|unittest)\b")
# A pipe, `;`, `||` or `&` can hide the test run's own exit code; `&&` can't.
_HIDES_EXIT_CODE = re.compile(r"\||;|\n|(?<!&)&(?!&)")


def runs_tests(command: str) -> bool:
    """True for a command that names a test runner."""
    return bool(_RUNS_TESTS.search(command))


@dataclass
class Evidence:
    """What the loop has seen so far, for gates that want more than a test run."""

    changed: bool = False
    tests_passed_since_change: bool = False

    def saw_change(self) -> None:
        self.changed = True
        self.tests_passed_since_change = False

    def saw_command(self, command: str, exit_code: int | None) -> None:
        if runs_tests(command) and exit_code == 0 and not _HIDES_EXIT_CODE.search(command.replace("2>&1", "")):
            self.tests_passed_since_change = True


@dataclass(frozen=True)
class GateVerdict:
    """message: what the model reads when the gate does not believe it. result: the gate's own pytest run, if it ran one."""

    passed: bool
    reasons: tuple[str, ...] = ()
    message: str = ""
    result: CommandResult | None = None
    output: str = ""

    @property
    def last_line(self) -> str:
        return self.output.strip().rsplit("\n", 1)[-1] if self.output.strip() else ""


class FinishGate(Protocol):
    name: str

    def check(self, workspace: Workspace, evidence: Evidence) -> GateVerdict: ...


class NoGate:
    name = "none"

    def check(self, workspace: Workspace, evidence: Evidence) -> GateVerdict:
        return GateVerdict(True)


@dataclass(frozen=True)
class TestsPass:
    """timeout_s: seconds for pytest; output_chars: how many of the last characters are kept and handed back."""

    __test__ = False

    timeout_s: float = 300.0
    output_chars: int = 4000
    name: str = "tests_pass"

    def check(self, workspace: Workspace, evidence: Evidence) -> GateVerdict:
        result = workspace.run(PYTEST, timeout_s=self.timeout_s)
        output = joined(result, self.output_chars)
        if result.timed_out:
            output += f"\npytest did not end within {self.timeout_s:g} seconds"
        if result.exit_code == 0 and not result.timed_out:
            return GateVerdict(True, result=result, output=output)
        return GateVerdict(False, ("pytest fails",), HANDED_BACK + output, result, output)


def test_names(workspace: Workspace) -> frozenset[str]:
    """`file::test` of every top-level test function of the copy's `test_*.py` files."""
    found = set()
    for name in sorted(files_below(workspace.root)):
        path = workspace.root / name
        if fnmatch.fnmatchcase(path.name, PATTERN):
            text = (read_plain(path) or b"").decode("utf-8", errors="replace")
            found |= {f"{name}::{function}" for function in test_functions(text)}
    return frozenset(found)


@dataclass(frozen=True)
class EvidenceGate:
    """tests_at_start: what `test_names` gave before the agent began; wants_tests: the task asks for new tests."""

    tests: TestsPass
    tests_at_start: frozenset[str]
    wants_tests: bool
    name: str = "evidence"

    def check(self, workspace: Workspace, evidence: Evidence) -> GateVerdict:
        missing = []
        if not evidence.changed:
            missing.append("no file of the repo was changed")
        if self.wants_tests and not test_names(workspace) - self.tests_at_start:
            missing.append("the task asks for new tests and there are none")
        if missing:
            return GateVerdict(False, tuple(missing), f"The task is not done yet: {'; '.join(missing)}.")
        if evidence.tests_passed_since_change:
            return GateVerdict(True, ("the tests passed after the last change",))
        return self.tests.check(workspace, evidence)


def finish_gate(settings: FinishSettings, tests_at_start: frozenset[str], wants_tests: bool) -> FinishGate:
    """The gate that the settings name."""
    tests = TestsPass(settings.timeout_s, settings.output_chars)
    match settings.gate:
        case "none":
            return NoGate()
        case "tests_pass":
            return tests
        case "evidence":
            return EvidenceGate(tests, tests_at_start, wants_tests)
