"""The tables of run folders as claims see them: every column with its type and the range its values can lie in.

The names are those of `analysis.tables`; a column that only the data have is usable as well (its type is read off), it
merely has no range.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.prereg.language.schema import Column, Schema, Type

FLAG = Column(Type.FLAG)
TEXT = Column(Type.TEXT)
COUNT = Column(Type.NUMBER, low=0, whole=True)
AMOUNT = Column(Type.NUMBER, low=0)
PERCENT = Column(Type.NUMBER, low=0, high=100)
SHARE = Column(Type.NUMBER, low=0, high=1)
WHOLE = Column(Type.NUMBER, whole=True)

ENDED_HOW = Column(
    Type.TEXT,
    values=(
        "finished", "server_500", "server_400", "step_limit", "context_exhausted", "server_error", "reply_unusable",
        "time_limit", "escalated", "interrupted",
    ),
)  # fmt: skip
STOP_REASON = Column(
    Type.TEXT,
    values=(
        "declared_done", "step_limit", "context_exhausted", "server_error", "reply_unusable", "time_limit", "escalated",
        "interrupted",
    ),
)  # fmt: skip
ARM = {
    "experiment": TEXT, "kind": Column(Type.TEXT, values=("real", "scripted", "tape")), "task": TEXT, "agent": TEXT,
    "n_ctx": COUNT, "rule_version": TEXT, "policy": TEXT, "protocol": TEXT, "gate": TEXT, "model": TEXT, "seed": WHOLE,
    "arm": TEXT,
}  # fmt: skip


def _columns(**kinds: tuple[Column, str]) -> dict[str, Column]:
    return {name: column for column, names in kinds.values() for name in names.split()}


RUNS: Mapping[str, Column] = {
    "run_id": TEXT,
    **ARM,
    "ended_how": ENDED_HOW,
    "stop_reason": STOP_REASON,
    **_columns(
        flags=(FLAG, "declared_done solved false_completion false_finish empty_completion untested_completion "
               "contradicted_completion finish_check_passed answer_cut_at_window_end truncated_as_done stopped_with_400 "
               "stopped_with_500 first_clear_after_cut reread_cleared test_file_rewritten_whole edit_file_on_tests "
               "ran_pytest_itself left_repo peak_then_lost worse_than_start"),
        counts=(COUNT, "steps finish_check hidden_passed hidden_total visible_passed visible_total visible_left_passed "
                "visible_left_total files_changed truncated_answers cut_by_window cut_by_limit cut_unparsed "
                "rejected_requests clears cleared_messages cleared_nothing post_clear_requests post_clear_over_half "
                "rereads_of_cleared bash_commands prompts auto_run refused guard_restores edit_file_on_tests_count "
                "outside_path_commands outside_path_flagged guessed_paths identical_writes repeated_calls tests_added "
                "tampered_tests idle_steps requests prompt_tokens reused_tokens evaluated_tokens new_tokens "
                "recomputed_tokens generated_tokens peak_resident_bytes peak_gpu_bytes regressions plan_open_items"),
        amounts=(AMOUNT, "amplification seconds prompt_seconds writing_seconds tool_seconds harness_seconds"),
        percents=(PERCENT, "post_clear_min_pct post_clear_median_pct"),
    ),
}  # fmt: skip

REQUESTS: Mapping[str, Column] = {
    "run_id": TEXT,
    **ARM,
    "outcome": Column(Type.TEXT, values=("reply", "cut", "overflow", "server_error")),
    "cause": Column(
        Type.TEXT,
        values=("cold", "append", "clear", "summary", "cut_retry", "template", "checkpoint", "unexplained"),
    ),
    **_columns(
        texts=(TEXT, "tag finish_reason"),
        flags=(FLAG, "after_clear cut log_matches"),
        counts=(COUNT, "step attempt status prompt reused evaluated new recomputed generated total"),
        amounts=(AMOUNT, "prompt_ms predicted_ms ms"),
        percents=(PERCENT, "evaluated_pct"),
        shares=(SHARE, "window_share"),
    ),
    "kind": TEXT,
}

CLEARS: Mapping[str, Column] = {
    "run_id": TEXT,
    **ARM,
    **_columns(
        texts=(TEXT, "reason when"),
        counts=(COUNT, "step tokens cleared freed_chars freed_tokens recomputed steps_until_next"),
    ),
}

COMMANDS: Mapping[str, Column] = {
    "run_id": TEXT,
    **ARM,
    **_columns(
        texts=(TEXT, "command purpose rule verdict reason answer answered_by"),
        flags=(FLAG, "timed_out truncated"),
        counts=(COUNT, "step call output_chars"),
        amounts=(AMOUNT, "ms"),
        numbers=(WHOLE, "exit_code"),
    ),
}

TESTS: Mapping[str, Column] = {
    "run_id": TEXT,
    **ARM,
    "suite": Column(Type.TEXT, values=("hidden", "visible", "visible_left")),
    "test": TEXT,
    "outcome": Column(Type.TEXT, values=("passed", "failed", "error", "skipped", "missing")),
}

# Facts that the articles state for a group of runs, or without saying which run is which (experiments/published).
GROUPS: Mapping[str, Column] = {
    "group": TEXT,
    **_columns(
        percents=(PERCENT, "post_clear_min_pct post_clear_median_pct"),
        counts=(COUNT, "runs post_clear_requests post_clear_over_half post_clear_at_most_half other_requests "
                "other_under_quarter requests_total"),
    ),
}  # fmt: skip
ANY_ORDER: Mapping[str, Column] = {
    "group": TEXT,
    "fact": Column(
        Type.TEXT,
        values=("ended_how", "false_finish", "finish_check_passed", "hidden_passed", "cleared_messages"),
    ),
    "ended_how": ENDED_HOW,
    "false_finish": FLAG,
    "finish_check_passed": FLAG,
    "hidden_passed": COUNT,
    "cleared_messages": COUNT,
}

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
    "groups": ("post_clear_over_half <= post_clear_requests", "post_clear_min_pct <= post_clear_median_pct"),
}

RUN_TABLES = Schema(
    {"runs": RUNS, "requests": REQUESTS, "clears": CLEARS, "commands": COMMANDS, "tests": TESTS}, CONSTRAINTS
)
PUBLISHED_TABLES = Schema(
    {
        "runs": {**RUNS, "series": TEXT, "decision_model": TEXT, "visible_result": TEXT, "clears_at_least": COUNT},
        "groups": GROUPS,
        "any_order": ANY_ORDER,
    },
    CONSTRAINTS,
)
