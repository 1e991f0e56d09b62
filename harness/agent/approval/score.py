"""How a rule does on commands: what it lets run that should ask, what it asks for needlessly, both with intervals.

Contract: pure; judges each command once and runs none. Intervals are Wilson's at 95 %; a share of nothing has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.agent.approval.labelled import Labelled
from harness.agent.approval.types import Rule


@dataclass(frozen=True)
class Share:
    """`count` of `n`, with Wilson's 95 % interval (None where n is 0)."""

    count: int
    n: int
    low: float | None
    high: float | None

    @property
    def estimate(self) -> float | None:
        return self.count / self.n if self.n else None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return "no labels"
        return f"{self.count} of {self.n} ({100 * self.low:.0f} to {100 * self.high:.0f} %)"

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count, "n": self.n, "estimate": self.estimate, "low": self.low, "high": self.high}


def share(count: int, n: int) -> Share:
    """Return `count` of `n` with its interval."""
    if n == 0:
        return Share(0, 0, None, None)
    from scipy.stats import binomtest  # takes seconds to load, which no run of an agent need wait for

    interval = binomtest(count, n).proportion_ci(method="wilson")
    return Share(count, n, float(interval.low), float(interval.high))


@dataclass(frozen=True)
class Judged:
    """One command with its label and the rule's verdict."""

    labelled: Labelled
    runs: bool
    reason: str


@dataclass(frozen=True)
class Score:
    """A rule's verdicts on a list of commands."""

    rule: str
    version: str
    judged: tuple[Judged, ...]

    @property
    def total(self) -> int:
        return len(self.judged)

    @property
    def should_ask_but_runs(self) -> list[str]:
        return [j.labelled.command for j in self.judged if j.labelled.should_ask is True and j.runs]

    @property
    def safe_but_asks(self) -> list[str]:
        return [j.labelled.command for j in self.judged if j.labelled.should_ask is False and not j.runs]

    @property
    def missed(self) -> Share:
        """Commands that should ask but run, of those that should ask."""
        return share(len(self.should_ask_but_runs), self._labelled(True))

    @property
    def needless(self) -> Share:
        """Harmless commands that ask, of the harmless ones."""
        return share(len(self.safe_but_asks), self._labelled(False))

    def _labelled(self, should_ask: bool) -> int:
        return sum(j.labelled.should_ask is should_ask for j in self.judged)

    def as_json(self) -> dict[str, Any]:
        """The document `rules score --json` prints for one rule."""
        runs = sum(j.runs for j in self.judged)
        return {
            "rule": self.rule,
            "version": self.version,
            "total": self.total,
            "should_ask_but_runs": self.should_ask_but_runs,
            "safe_but_asks": self.safe_but_asks,
            "should_ask": self._labelled(True),
            "safe": self._labelled(False),
            "unlabelled": sum(j.labelled.should_ask is None for j in self.judged),
            "runs": runs,
            "asks": self.total - runs,
            "missed": self.missed.as_json(),
            "needless": self.needless.as_json(),
            "verdicts": [
                {"command": j.labelled.command, "verdict": "runs" if j.runs else "asks", "reason": j.reason}
                for j in self.judged
            ],
        }


def score(rule: Rule, labelled: Sequence[Labelled]) -> Score:
    """Judge every command of `labelled` with `rule`."""
    judged = []
    for one in labelled:
        verdict = rule.judge(one.command)
        judged.append(Judged(one, verdict.runs, verdict.reason))
    return Score(rule.name, rule.version, tuple(judged))


def markdown(scores: Sequence[Score]) -> str:
    """One table of several rules on the same commands."""
    lines = [
        "| rule | version | should ask but runs | harmless but asks |",
        "|---|---|---|---|",
        *(f"| {s.rule} | {s.version} | {s.missed} | {s.needless} |" for s in scores),
    ]
    return "\n".join(lines)
