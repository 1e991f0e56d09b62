"""One decision per command: the rule judges, an answerer answers what is asked, and all of it is one event."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from harness.agent.approval.advice import Decider
from harness.agent.approval.answer import Answerer
from harness.agent.approval.types import Rule
from harness.record.events import EventSink


@dataclass(frozen=True)
class RuleApprover:
    """decider: asked only about commands that ask; its opinion is recorded and never decides. folder: the repo, as named to it."""

    rule: Rule
    answerer: Answerer
    answered_by: str
    sink: EventSink
    decider: Decider | None = None
    folder: str = ""

    def approve(self, command: str) -> bool:
        verdict = self.rule.judge(command)
        advice = None
        answer = True
        if not verdict.runs:
            if self.decider is not None:
                advice = self.decider.advise(command, self.folder)
            answer = self.answerer(command, verdict, advice)
        self.sink.emit(
            "approval",
            command=command,
            rule=self.rule.name,
            rule_version=self.rule.version,
            verdict="runs" if verdict.runs else "asks",
            reason=verdict.reason,
            answer=None if verdict.runs else ("yes" if answer else "no"),
            answered_by=None if verdict.runs else self.answered_by,
            advice=None if advice is None else asdict(advice) | {"line": advice.line},
        )
        return answer
