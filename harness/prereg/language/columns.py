"""The tables a claim may speak of: names and types are those of `analysis.tables`, with the range values can lie in.

The range of a number starts at 0 unless said otherwise here; a column that only the data have is usable as well (its type is
read off), it merely has no range.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.tables.columns import TABLES
from analysis.tables.columns import Column as TableColumn
from harness.prereg.language.schema import Column, Schema, Type

FLAG, TEXT = Column(Type.FLAG), Column(Type.TEXT)
COUNT = Column(Type.NUMBER, low=0, whole=True)

_CUT_KINDS = ("window", "limit", "unparsed")
_STOPS = (
    "step_limit", "context_exhausted", "server_error", "reply_unusable", "time_limit", "escalated", "agent_failed",
    "interrupted",
)  # fmt: skip
# Closed lists of texts, by table and column ("*" for every table).
_VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("*", "kind"): ("real", "scripted", "tape", "published"),
    ("runs", "ended_how"): ("finished", "server_500", "server_400", *_STOPS),
    ("runs", "stop_reason"): ("declared_done", *_STOPS),
    ("requests", "outcome"): ("reply", "cut", "overflow", "server_error"),
    ("requests", "cut_kind"): _CUT_KINDS,
    ("requests", "cause"): (
        "cold", "append", "clear", "summary", "cut_retry", "template", "checkpoint", "unexplained",
    ),
    ("clears", "when"): ("after_reply", "before_send", "overflow"),
    ("commands", "verdict"): ("runs", "asks"),
    ("commands", "answer"): ("yes", "no"),
    ("commands", "advice_choice"): ("1", "2"),
    ("tests", "set"): ("hidden", "visible", "visible_left"),
    ("tests", "state"): ("passed", "failed", "error", "skipped", "missing"),
}  # fmt: skip
_ANY_SIGN = ("seed", "exit_code")
_UP_TO = {"window_share": 1.0, "advice_probability": 1.0}

CONSTRAINTS: Mapping[str, tuple[str, ...]] = {
    "runs": (
        "hidden_passed <= hidden_total",
        "visible_passed <= visible_total",
        "visible_left_passed <= visible_left_total",
        "hidden_total > 0",
        "solved == (hidden_passed == hidden_total)",
        "false_completion == (declared_done and not solved)",
        "outside_path_flagged <= outside_path_commands",
        "prompts + auto_run <= bash_commands",
        "cleared_nothing <= clears",
        "post_clear_requests <= clears",
        "post_clear_over_half <= post_clear_requests",
        "post_clear_min_pct <= post_clear_median_pct",
        "evaluated_tokens <= prompt_tokens",
        "new_tokens <= evaluated_tokens",
        "recomputed_tokens <= evaluated_tokens",
        "rejected_requests <= requests",
        'stopped_with_400 == (ended_how == "server_400")',
        'stopped_with_500 == (ended_how == "server_500")',
    ),
    "requests": ("evaluated <= prompt", "reused <= prompt", "new <= evaluated", "recomputed <= evaluated"),
    "tests": ('passed == (state == "passed")',),
    "groups": ("post_clear_over_half <= post_clear_requests", "post_clear_min_pct <= post_clear_median_pct"),
}


def _column(table: str, name: str, declared: TableColumn) -> Column:
    if declared.dtype == "boolean":
        return FLAG
    if declared.dtype == "string":
        return Column(Type.TEXT, values=_VALUES.get((table, name), _VALUES.get(("*", name), ())))
    whole = declared.dtype == "Int64"
    if name in _ANY_SIGN:
        return Column(Type.NUMBER, whole=whole)
    if name in _UP_TO or name.endswith("_pct"):
        return Column(Type.NUMBER, low=0, high=_UP_TO.get(name, 100.0), whole=whole)
    return Column(Type.NUMBER, low=0, whole=whole)


_RUN_TABLES = {
    table: {name: _column(table, name, declared) for name, declared in columns.items()}
    for table, columns in TABLES.items()
}
RUN_TABLES = Schema(_RUN_TABLES, CONSTRAINTS)

# Facts that the articles state for a group of runs, or without saying which run is which (experiments/published).
_GROUPS = {
    "group": TEXT,
    "post_clear_requests": COUNT,
    "post_clear_over_half": COUNT,
    "post_clear_min_pct": _RUN_TABLES["runs"]["post_clear_min_pct"],
    "post_clear_median_pct": _RUN_TABLES["runs"]["post_clear_median_pct"],
}
_IN_ANY_ORDER = ("ended_how", "false_finish", "finish_check_passed", "hidden_passed", "cleared_messages")
PUBLISHED_TABLES = Schema(
    {
        "runs": _RUN_TABLES["runs"],
        "groups": _GROUPS,
        "any_order": {
            "group": TEXT,
            "fact": Column(Type.TEXT, values=_IN_ANY_ORDER),
            **{name: _RUN_TABLES["runs"][name] for name in _IN_ANY_ORDER},
        },
    },
    CONSTRAINTS,
)
