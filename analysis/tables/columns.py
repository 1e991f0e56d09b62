"""The columns of every table: type, meaning, unit. Null = not known, never 0 for want of data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["string", "Int64", "Float64", "boolean"]
S, I, F, B = "string", "Int64", "Float64", "boolean"  # noqa: E741


@dataclass(frozen=True)
class Column:
    """One column: pandas' nullable type, and what it means, with the unit."""

    dtype: Dtype
    meaning: str


def _columns(*rows: tuple[str, Dtype, str]) -> dict[str, Column]:
    return {name: Column(dtype, meaning) for name, dtype, meaning in rows}


RUN = _columns(
    ("run_id", S, "first 12 hex digits of the hash of what can change the result"),
    ("experiment", S, "the experiment's name"),
    ("kind", S, "real, scripted, tape or published; never mixed in one figure"),
    ("task", S, "the task's name"),
    ("agent", S, "the agent version"),
    ("n_ctx", I, "window of the slot, tokens"),
    ("rule_version", S, "the approval rule"),
    ("policy", S, "the context policy"),
    ("protocol", S, "how calls travel"),
    ("gate", S, "the finish gate"),
    ("model", S, "the model's name"),
    ("seed", I, "the run's seed"),
    ("arm", S, "short label of what differs from other arms; the same for all seeds and tasks"),
    ("steps", I, "requests the loop used"),
    ("ended_how", S, "finished, server_500, server_400, step_limit, context_exhausted, or another stop reason"),
    ("stop_reason", S, "the loop's own stop reason"),
    ("declared_done", B, "the loop ended because the model said so and the gate believed it"),
    ("solved", B, "all hidden tests pass on the final tree"),
    ("false_completion", B, "declared done and not solved"),
    ("false_finish", B, "declared done on an unchanged repo"),
    ("empty_completion", B, "declared done with an empty last reply"),
    ("untested_completion", B, "declared done without a test run after the last change"),
    ("contradicted_completion", B, "declared done although the last test run, or the tests as left, failed"),
    ("finish_check", I, "finish checks of the gate"),
    ("finish_check_passed", B, "the last finish check passed"),
    ("hidden_passed", I, "hidden tests that pass at the end"),
    ("hidden_total", I, "hidden tests"),
    ("visible_passed", I, "visible tests, as they were at the start, that pass on the final code"),
    ("visible_total", I, "visible tests at the start"),
    ("visible_left_passed", I, "tests as the agent left them that pass on its own tree"),
    ("visible_left_total", I, "tests as the agent left them"),
    ("files_changed", I, "files that differ from the start at the end"),
    ("truncated_answers", I, "replies cut off, by the window, by a limit or unparsed"),
    ("cut_by_window", I, "replies cut by the window"),
    ("cut_by_limit", I, "replies cut by the reply limit"),
    ("cut_unparsed", I, "replies the server could not parse"),
    ("answer_cut_at_window_end", B, "at least one reply ended because the window was full"),
    ("truncated_as_done", I, "cut replies without a call that were taken as the model's last word"),
    ("rejected_requests", I, "requests refused as larger than the window"),
    ("stopped_with_400", B, "the run ended on such a refusal (context_exhausted is an end of its own)"),
    ("stopped_with_500", B, "the run ended on a server's 500"),
    ("clears", I, "times old content was cleared, clears of nothing included"),
    ("clears_at_least", I, "the same of a run; of the articles' runs the lower bound they state"),
    ("cleared_messages", I, "messages changed by all clears"),
    ("cleared_nothing", I, "clears that changed no message"),
    ("first_clear_after_cut", B, "the first clear came only after a cut reply; null without a clear"),
    ("post_clear_requests", I, "requests that were the first in the slot after a clear that changed something"),
    ("post_clear_over_half", I, "of these, evaluated more than half of their prompt"),
    ("post_clear_min_pct", F, "least evaluated share of the prompt of these, percent"),
    ("post_clear_median_pct", F, "median evaluated share of the prompt of these, percent"),
    ("reread_cleared", B, "a file was read again whose content had been cleared"),
    ("rereads_of_cleared", I, "how many such reads"),
    ("bash_commands", I, "bash calls of the model"),
    ("prompts", I, "commands that asked y/N"),
    ("auto_run", I, "commands run without asking"),
    ("refused", I, "asked commands that were answered no"),
    ("guard_restores", I, "files the test guard put back"),
    ("test_file_rewritten_whole", B, "write_file on a test file the run had not made itself"),
    ("edit_file_on_tests", B, "edit_file on a test file"),
    ("edit_file_on_tests_count", I, "how often"),
    ("ran_pytest_itself", B, "the model ran pytest"),
    ("left_repo", B, "a command named a path outside the copy"),
    ("outside_path_commands", I, "asked commands with a path outside the copy"),
    ("outside_path_flagged", I, "of these, flagged by the decision model; null where it was not asked"),
    ("guessed_paths", I, "guesses at the repo's place (/repo, /app, …) in commands and file tools"),
    ("identical_writes", I, "writes of the content that was already there"),
    ("repeated_calls", I, "calls made before with the same arguments on the same state of the copy"),
    ("tests_added", I, "tests at the end that were not there at the start"),
    ("tampered_tests", I, "tests of the start that were changed or removed at the end"),
    ("idle_steps", I, "steps at the end since the copy changed or unseen text was read"),
    ("requests", I, "chat requests of the agent, refused ones included"),
    ("prompt_tokens", I, "prompt tokens of all requests, tokens"),
    ("reused_tokens", I, "prompt tokens taken from the cache (timings.cache_n), tokens"),
    ("evaluated_tokens", I, "prompt tokens evaluated (timings.prompt_n), tokens; the articles' re-computed"),
    ("new_tokens", I, "evaluated tokens of content the slot never held, tokens"),
    ("recomputed_tokens", I, "evaluated tokens of everything else, tokens"),
    ("amplification", F, "evaluated / new; 1 = ideal append"),
    ("generated_tokens", I, "tokens written"),
    ("seconds", F, "duration, s"),
    ("prompt_seconds", F, "reading prompts, s"),
    ("writing_seconds", F, "writing replies, s"),
    ("tool_seconds", F, "tools and finish checks, s"),
    ("harness_seconds", F, "the rest of the duration, s"),
    ("peak_resident_bytes", I, "the server's peak resident memory, bytes"),
    ("peak_gpu_bytes", I, "the server's peak GPU memory, bytes"),
    ("regressions", I, "visible tests that passed at the start and do not at the end"),
    ("peak_then_lost", B, "solved at some step, not at the end"),
    ("worse_than_start", B, "fewer hidden tests pass than on the untouched repo"),
    ("plan_open_items", I, "open items of the last plan; null for agents that never planned"),
)

ARM = ("experiment", "kind", "arm", "agent", "n_ctx", "policy", "model", "seed", "task")
_ARM = {"run_id": RUN["run_id"]} | {name: RUN[name] for name in ARM}

# Columns that only repeat another of the same row, so that a claim on the articles' facts judges own runs as well.
REPEATED = {"clears_at_least": "clears"}

REQUEST = _ARM | _columns(
    ("step", I, "number of the step, from 0"),
    ("attempt", I, "0, or 1 for the retry after an overflow"),
    ("tag", S, "agent or summary"),
    ("outcome", S, "reply, cut, overflow or server_error"),
    ("cut_kind", S, "window, limit or unparsed; null when not cut"),
    ("status", I, "HTTP status"),
    ("finish_reason", S, "as the server gave it"),
    ("prompt", I, "whole prompt, tokens"),
    ("reused", I, "of it from the cache, tokens"),
    ("evaluated", I, "of it evaluated, tokens"),
    ("new", I, "evaluated tokens of content the slot never held"),
    ("recomputed", I, "evaluated - new, tokens"),
    ("generated", I, "tokens written"),
    ("prompt_ms", F, "reading, ms"),
    ("predicted_ms", F, "writing, ms"),
    ("ms", F, "whole request as the client saw it, ms"),
    ("total", I, "prompt + generated, tokens"),
    ("window_share", F, "total / n_ctx, 0 to 1"),
    ("after_clear", B, "the first request in the slot after a clear that changed something"),
    ("cut", B, "the reply was cut"),
    ("dropped", B, "the cut reply was thrown away"),
    (
        "cause",
        S,
        "why anything was evaluated: cold, append, clear, summary, cut_retry, template, checkpoint, unexplained",
    ),
    ("evaluated_pct", F, "100 * evaluated / prompt, percent"),
    ("log_task", I, "the joined log row's task number"),
    ("log_prompt_tokens", I, "its prompt, tokens"),
    ("log_cached_tokens", I, "its reuse, tokens"),
    ("log_processed_tokens", I, "its evaluated tokens"),
    ("log_generated_tokens", I, "its generated tokens"),
    ("log_prompt_ms", F, "its reading, ms"),
    ("log_eval_ms", F, "its writing, ms"),
    ("log_truncated", B, "its truncated flag"),
    ("log_status", S, "its status"),
    ("log_matches", B, "reply and log agree on every number both tell; null without a joined row"),
)

CLEAR = _ARM | _columns(
    ("clear", I, "number of the clear within the run, from 0"),
    ("step", I, "step at which it happened"),
    ("when", S, "after_reply, before_send or overflow"),
    ("reason", S, "the policy's own words"),
    ("trigger_tokens", I, "prompt size that triggered it, tokens"),
    ("cleared", I, "messages changed"),
    ("freed_chars", I, "characters freed"),
    ("freed", I, "tokens freed"),
    ("recomputed", I, "recomputed by the next request in the slot, tokens"),
    ("evaluated", I, "evaluated by the next request in the slot, tokens"),
    ("prompt", I, "prompt of that request, tokens"),
    ("evaluated_pct", F, "100 * evaluated / prompt of that request, percent"),
    ("yield", F, "freed / recomputed; below 1 the clear cost more than it freed"),
    ("steps_to_next", I, "steps until the next clear; null for the last one"),
    ("thrash", B, "another clear came within two requests"),
)

COMMAND = _ARM | _columns(
    ("step", I, "number of the step"),
    ("command", S, "the command as the model wrote it"),
    ("rule_version", S, "the rule that judged it"),
    ("verdict", S, "runs or asks"),
    ("reason", S, "the rule's reason"),
    ("answer", S, "yes or no; null when not asked"),
    ("answered_by", S, "who answered"),
    ("executed", B, "it was run"),
    ("exit_code", I, "as the shell gave it"),
    ("timed_out", B, "the time limit ended it"),
    ("ms", F, "duration, ms"),
    ("output_chars", I, "characters printed before any cap"),
    ("outside", B, "names a path outside the copy"),
    ("guess", B, "names one of the usual places of a repo"),
    ("runs_tests", B, "starts pytest"),
    ("advice_choice", S, "1 routine, 2 look closely; null without an answer"),
    ("advice_probability", F, "probability of look closely, 0 to 1"),
    ("advice_seconds", F, "the decision model's time, s"),
)

TEST = _ARM | _columns(
    ("set", S, "hidden, visible or visible_left"),
    ("test", S, "the test's name"),
    ("state", S, "passed, failed, error, skipped or missing"),
    ("passed", B, "state is passed"),
)

TABLES: dict[str, dict[str, Column]] = {
    "runs": RUN,
    "requests": REQUEST,
    "clears": CLEAR,
    "commands": COMMAND,
    "tests": TEST,
}
COLUMNS: dict[str, dict[str, str]] = {t: {n: c.meaning for n, c in columns.items()} for t, columns in TABLES.items()}
