"""Rows: one request as the log tells it.

Contract: a main field holds only what the log prints for that task; ``None`` means the log does not say. What follows
by arithmetic alone stands in ``*_derived``, and only where the main field is ``None``. Rows are immutable.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Status = Literal["ok", "rejected", "failed", "cancelled"]


class RequestRow(NamedTuple):
    """One request of a llama-server log. Counts are tokens, times milliseconds.

    A named tuple because a log of a gigabyte has a million of them. The fields after ``run`` are for joining a log with
    replies and are no part of :meth:`as_dict`.
    """

    slot: int | None
    task: int
    prompt_tokens: int | None
    cached_tokens: int | None
    processed_tokens: int | None
    generated_tokens: int | None
    prompt_ms: float | None
    eval_ms: float | None
    truncated: bool | None
    status: Status | None
    instance: str | None = None
    release_n_tokens: int | None = None
    prompt_tokens_derived: int | None = None
    cached_tokens_derived: int | None = None
    processed_tokens_derived: int | None = None
    generated_tokens_derived: int | None = None
    draft_n: int | None = None
    draft_accepted: int | None = None
    error: str | None = None
    run: int = 0
    container: str | None = None
    n_ctx: int | None = None
    is_child: bool | None = None
    forced_full: int = 0
    restored_checkpoints: int = 0
    context_shifts: int = 0
    prompt_cut: bool = False
    launched: bool = True

    def as_dict(self, *, with_run: bool, with_container: bool = False) -> dict[str, Any]:
        """Main fields always, optional keys only where there is something; ``run`` where the log has a restart,
        ``container`` where requests of several stand in it."""
        values = tuple(self)
        row = dict(zip(MAIN_FIELDS, values, strict=False))
        for name, value in zip(OPTIONAL_FIELDS, values[len(MAIN_FIELDS) :], strict=False):
            if value is not None:
                row[name] = value
        if with_run:
            row["run"] = self.run
        if with_container and self.container is not None:
            row["container"] = self.container
        return row


MAIN_FIELDS = RequestRow._fields[: RequestRow._fields.index("status") + 1]
OPTIONAL_FIELDS = RequestRow._fields[len(MAIN_FIELDS) : RequestRow._fields.index("run")]
