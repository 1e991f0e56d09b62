"""bash: asks the approval rule, then runs the command in the sandbox (rules.md sections 0 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harness.agent.approval.answer import REFUSAL
from harness.agent.tools.base import Tool, ToolError
from harness.agent.tools.steady import steady
from harness.agent.workspace import CommandResult, Workspace
from harness.record.events import EventSink


class Approver(Protocol):
    """Decides about one command, asks whom it must ask, and reports the decision to the sink itself."""

    def approve(self, command: str) -> bool: ...


def joined(result: CommandResult, limit: int) -> str:
    """stdout then stderr, the last `limit` characters of it, without durations and addresses (see steady)."""
    text = steady(result.stdout + result.stderr)
    return text[-limit:] if limit else ""


@dataclass(frozen=True)
class Shell:
    """timeout_s: seconds for one command; output_chars: how many of the last characters the model sees.

    observe is told every command that ran and its exit code.
    """

    workspace: Workspace
    approver: Approver
    sink: EventSink
    timeout_s: float
    output_chars: int
    observe: Callable[[str, int | None], None]

    def bash(self, command: str) -> str:
        if not self.approver.approve(command):
            return REFUSAL
        result = self.workspace.run(command, timeout_s=self.timeout_s)
        self.sink.emit(
            "command",
            purpose="tool",
            command=command,
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            limit=result.limit,
            ms=result.ms,
            output_chars=result.output_chars,
            truncated=result.truncated,
        )
        self.observe(command, result.exit_code)
        if result.timed_out:
            raise ToolError(f"the command did not end within {self.timeout_s:g} seconds")
        text = joined(result, self.output_chars)
        end = f"[exit code {result.exit_code}]"
        if result.limit:
            end = f"[the {result.limit.replace('_', ' ')} limit was hit]\n{end}"
        return f"{text}\n{end}" if text and not text.endswith("\n") else f"{text}{end}"

    def tool(self) -> Tool:
        command = {"type": "string", "description": "a shell command; it runs in the repo"}
        return Tool("bash", "Run a shell command in the repo.", {"command": command}, self.bash)
