"""Approval: a rule says runs or asks, an answerer answers what is asked, a decision model may advise."""

from harness.agent.approval.advice import Advice, Decider, wordings
from harness.agent.approval.answer import ANSWERERS, REFUSAL, Answerer, answerer
from harness.agent.approval.registry import RULES, rule
from harness.agent.approval.types import Rule, Verdict

__all__ = [
    "ANSWERERS",
    "REFUSAL",
    "RULES",
    "Advice",
    "Answerer",
    "Decider",
    "Rule",
    "Verdict",
    "answerer",
    "rule",
    "wordings",
]
