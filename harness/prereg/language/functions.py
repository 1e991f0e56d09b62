"""The functions of the claim language: name, what they take and what they mean. The parser, the evaluation and the docs
all go by this list."""

from __future__ import annotations

from dataclasses import dataclass

from harness.prereg.language.schema import Type


@dataclass(frozen=True)
class Function:
    """takes: the type of the expression that is looked at in each row. gives: the type of the result."""

    name: str
    takes: Type
    gives: Type
    meaning: str
    example: str


AGGREGATES = {
    f.name: f
    for f in (
        Function("count", Type.FLAG, Type.NUMBER, "number of the rows for which the condition holds",
                 'count(runs[agent == "part3"], solved) >= 2'),
        Function("any", Type.FLAG, Type.FLAG, "at least one row fulfils the condition",
                 "any(runs, guard_restores >= 1)"),
        Function("all", Type.FLAG, Type.FLAG, "every row fulfils the condition",
                 "all(runs, hidden_passed == hidden_total)"),
        Function("none", Type.FLAG, Type.FLAG, "no row fulfils the condition", "none(runs, stopped_with_400)"),
        Function("share", Type.FLAG, Type.NUMBER, "rows that fulfil the condition / all selected rows, 0 to 1",
                 "share(requests[after_clear], evaluated_pct >= 50) >= 0.9"),
        Function("min", Type.NUMBER, Type.NUMBER, "smallest value", "min(runs, hidden_passed) >= 3"),
        Function("max", Type.NUMBER, Type.NUMBER, "largest value", "max(runs, prompts) <= 2"),
        Function("median", Type.NUMBER, Type.NUMBER, "middle value; half-way between the two middle ones",
                 "median(runs, amplification) < 3"),
        Function("sum", Type.NUMBER, Type.NUMBER, "total of the values",
                 "sum(runs, outside_path_flagged) == sum(runs, outside_path_commands)"),
    )
}  # fmt: skip

PAIRED = {
    f.name: f
    for f in (
        Function("ratio", Type.NUMBER, Type.NUMBER,
                 "geometric mean of first / second over the pairs with the same task and seed; all values above 0",
                 'ratio(runs[policy == "guarded"], runs[policy == "published"], evaluated_tokens) < 0.5'),
        Function("difference", Type.NUMBER, Type.NUMBER,
                 "mean of first - second over the pairs with the same task and seed",
                 'difference(runs[agent == "part3"], runs[agent == "part2"], hidden_passed, decide="interval") > 0'),
    )
}  # fmt: skip

DECIDE = {
    "estimate": "the estimate decides; the 95 % interval is shown beside it (default)",
    "interval": "the 95 % interval decides: a comparison that not all of it fulfils, or fails, is undetermined",
}

KNOWN = Function("known", Type.FLAG, Type.FLAG, "true where the value is known (not null); takes any type",
                 "count(runs, known(hidden_passed)) == 3")  # fmt: skip
