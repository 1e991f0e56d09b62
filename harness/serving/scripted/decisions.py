"""Scripted answers of a decision model: `POST /v1/systemone`.

The first rule whose `contains` stands in the request's state answers; a rule without one answers everything. For a choice
question `choice` names the option and `probability` its share, the rest is spread over the others; for a noul question
`probability` is P(true); for a score question `score` is the level.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness.serving.scripted.errors import Refused
from harness.serving.scripted.tokenizer import count


class DecisionError(ValueError):
    """A decision rule that is not written as docs/scenarios.md says."""


@dataclass(frozen=True)
class Rule:
    choice: str | None = None
    probability: float = 1.0
    score: float = 0.0
    contains: str = ""


@dataclass(frozen=True)
class Decisions:
    rules: tuple[Rule, ...]

    @classmethod
    def read(cls, value: Any) -> Decisions:
        """Builds the rules from YAML; raises DecisionError."""
        if not isinstance(value, list):
            raise DecisionError(f"decisions: expected a list of rules, got {value!r}")
        rules: list[Rule] = []
        for number, given in enumerate(value):
            if not isinstance(given, dict) or not set(given) <= {"choice", "probability", "score", "contains"}:
                raise DecisionError(f"decisions[{number}]: takes choice, probability, score, contains; got {given!r}")
            rule = Rule(**(given | ({"choice": str(given["choice"])} if "choice" in given else {})))
            if not isinstance(rule.probability, (int, float)) or not 0 <= rule.probability <= 1:
                raise DecisionError(f"decisions[{number}].probability: needs a number between 0 and 1")
            rules.append(rule)
        return cls(tuple(rules))

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request body; raises Refused as llama-server does."""
        if "state" not in body:
            raise Refused(400, '"state" must be provided')
        questions = body.get("questions")
        if not isinstance(questions, dict) or not questions:
            raise Refused(400, '"questions" must be a non-empty object')
        state = body["state"] if isinstance(body["state"], str) else json.dumps(body["state"], ensure_ascii=False)
        rule = next((r for r in self.rules if r.contains in state), None)
        if rule is None:
            raise Refused(500, "the scenario has no decision for this state")
        return {
            "model": body.get("model") or "scripted",
            "answers": {name: _answer(name, question, rule) for name, question in questions.items()},
            "usage": {"input_tokens": count(state), "output_tokens": 0},
        }


def _answer(name: str, question: Any, rule: Rule) -> dict[str, Any]:
    kind = question.get("type") if isinstance(question, dict) else None
    criteria = question.get("criteria") if isinstance(question, dict) else None
    if kind == "choice" and isinstance(criteria, dict) and criteria:
        return _choice(name, list(criteria), rule)
    if kind == "noul":
        return {"type": "noul", "noul": rule.probability}
    if kind == "score" and isinstance(criteria, list) and 2 <= len(criteria) <= 10:
        level = min(max(round(rule.score), 0), len(criteria) - 1)
        shares = {str(n): float(n == level) for n in range(len(criteria))}
        legend = {str(n): text for n, text in enumerate(criteria)}
        return {"type": "score", "score": rule.score, "legend": legend, "probabilities": shares, "confidence": 1.0}
    raise Refused(400, f"questions.{name}: needs a type (choice, score, noul) and criteria that fit it")


def _choice(name: str, options: list[str], rule: Rule) -> dict[str, Any]:
    chosen = rule.choice or options[0]
    if chosen not in options:
        raise Refused(500, f"questions.{name}: the scenario chooses {chosen!r}, which is no option")
    others = len(options) - 1
    shares = {o: rule.probability if o == chosen else (1 - rule.probability) / others for o in options}
    return {"type": "choice", "choice": chosen, "probabilities": shares, "confidence": rule.probability}
