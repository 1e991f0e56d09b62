"""Joins a run's replies with the server's own log, and checks the one against the other.

Task ids are not in chat replies, so the join goes by order within the slot and by what both tell: evaluated and
generated tokens, the two times. Replies and log rows are aligned so that as many of these as possible agree, order kept;
a pair is one request when most of what both tell agrees. It *matches* when all of it does. Numbers come from the replies;
the log is the check, and a disagreement is reported, not averaged. So is what the log ought to tell of a request and does not
(a line is missing), and what its parser counted as damage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.server_log import LogError, RequestRow, parse
from analysis.tables.records import Source, all_problems, load
from harness.record.slot import Event

# The log rounds milliseconds to 0.01.
MS_TOLERANCE = 0.0101
FIELDS = (
    ("processed_tokens", "prompt_n"),
    ("generated_tokens", "predicted_n"),
    ("prompt_ms", "prompt_ms"),
    ("eval_ms", "predicted_ms"),
    ("cached_tokens", "cache_n"),
    ("prompt_tokens", "prompt"),
    ("release_n_tokens", "held"),
    ("truncated", "truncated"),
)
TIMING = ("processed_tokens", "generated_tokens", "prompt_ms", "eval_ms")
SIZES = ("prompt_tokens", "cached_tokens")
NOT_TIMED = {("cut", "failed"), ("cut", "ok"), ("server_error", "failed"), ("server_error", "cancelled")}


@dataclass(frozen=True)
class Pair:
    """One request in both: the number of its request event, its log row, and where they differ {field: [log, reply]}.

    missing: fields that the log ought to tell of it and does not.
    """

    number: int
    row: RequestRow
    differences: dict[str, list[Any]]
    compared: int
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joined:
    """A run's join. replies: request events whose reply has timings. rows: timed log rows that count against them.

    damage: what the log's parser counted, one line each.
    """

    pairs: dict[int, Pair] = field(default_factory=dict)
    replies: int = 0
    rows: int = 0
    before: int = 0
    unmatched_rows: list[RequestRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def columns(self, number: int) -> dict[str, Any]:
        """The log_* columns of one request."""
        pair = self.pairs.get(number)
        if pair is None:
            return {}
        row = pair.row
        return {
            "log_task": row.task,
            "log_prompt_tokens": row.prompt_tokens,
            "log_cached_tokens": row.cached_tokens,
            "log_processed_tokens": row.processed_tokens,
            "log_generated_tokens": row.generated_tokens,
            "log_prompt_ms": row.prompt_ms,
            "log_eval_ms": row.eval_ms,
            "log_truncated": row.truncated,
            "log_status": row.status,
            "log_matches": not pair.differences if pair.compared else None,
        }


def join(events: Sequence[Event], log: Path) -> Joined:
    """Joins one run. A run without a log (an attached server) gives an empty join; a damaged log a problem."""
    answers = _answers(events)
    replies = sum(_timed(a) for _, a in answers)
    if not log.is_file():
        return Joined(replies=replies)
    try:
        parsed = parse(log)
    except LogError as e:
        return Joined(replies=replies, problems=[str(e)])
    rows = parsed.requests
    sized = any(row.n_ctx is not None for row in rows)
    pairs = {}
    aligned = align(answers, rows)
    for a, r in aligned:
        number, answer = answers[a]
        differences, compared = compare(answer, rows[r])
        pairs[number] = Pair(number, rows[r], differences, compared, _missing(answer, rows[r], sized))
    first = min((r for _, r in aligned), default=0)
    taken = {r for _, r in aligned}
    counted = [r for r in range(first, len(rows)) if _counts(rows[r])]
    return Joined(
        pairs,
        replies,
        rows=len(counted),
        before=sum(_counts(rows[r]) for r in range(first)),
        unmatched_rows=[rows[r] for r in counted if r not in taken],
        damage=[f"{log}: {warning}" for warning in parsed.warnings],
    )


def cross_check(source: Source) -> dict[str, Any]:
    """Replies against logs over all runs of a folder that have a log.

    replies: replies with timings. log: log rows of finished requests, those before a run's first request (a probe's) not
    counted. matched: pairs that agree on every number both tell. mismatched: pairs that don't. incomplete: pairs of which the
    log tells less than it should. details: one dict per disagreement, per
    reply or row without a partner, and per request of which the log tells less than it should; `words` says one in words.
    without_log: runs whose server kept no log here. problems: also what each log's parser counted as damage.
    """
    records = load(source)
    found: dict[str, Any] = {"replies": 0, "log": 0, "matched": 0, "mismatched": 0, "incomplete": 0, "without_log": 0}
    details: list[dict[str, Any]] = []
    problems = list(all_problems(records))
    for record in records.runs:
        if not record.folder.server_log.is_file():
            found["without_log"] += 1
            continue
        joined = join(record.events, record.folder.server_log)
        problems += [*joined.problems, *joined.damage]
        found["replies"] += joined.replies
        found["log"] += joined.rows
        run = record.result.get("run_id")
        for number, answer in _answers(record.events):
            pair = joined.pairs.get(number)
            if not _timed(answer):
                continue
            place = {"run_id": run, "step": answer.get("step"), "attempt": answer.get("attempt")}
            if pair is None:
                details.append(place | {"problem": "no row of the log fits this reply"})
            elif pair.differences:
                found["mismatched"] += 1
                details.append(place | {"problem": "reply and log differ", "differences": pair.differences})
            else:
                found["matched"] += 1
            if pair is not None and pair.missing:
                found["incomplete"] += 1
                details.append(place | {"problem": "the log does not tell", "missing": list(pair.missing)})
        details += [
            {"run_id": run, "task": row.task, "problem": "no reply fits this row of the log"}
            for row in joined.unmatched_rows
        ]
    return found | {"details": details, "problems": problems}


def line(check: dict[str, Any]) -> str:
    """The check in one line."""
    part = f", told in part {check['incomplete']}" if check.get("incomplete") else ""
    counts = f"replies {check['replies']}, log {check['log']}, matched {check['matched']}"
    return f"{counts}, mismatched {check['mismatched']}{part}"


def words(detail: dict[str, Any]) -> str:
    """One of the check's details in words."""
    place = f"step {detail['step']}" if "step" in detail else f"task {detail.get('task')}"
    if detail.get("attempt"):
        place += f", attempt {detail['attempt']}"
    numbers = "; ".join(f"{k}: log {a}, reply {b}" for k, (a, b) in (detail.get("differences") or {}).items())
    what = ", ".join(detail.get("missing") or [])
    return f"run {detail['run_id']}, {place}: {detail['problem']}{f' {what}' if what else ''}{f': {numbers}' if numbers else ''}"


def align(answers: Sequence[tuple[int, Event]], rows: Sequence[RequestRow]) -> list[tuple[int, int]]:
    """Pairs of positions, order kept, that agree in as many numbers as possible."""
    if len(answers) == len(rows) and all(_score(a, r) > 0 for (_, a), r in zip(answers, rows, strict=True)):
        return [(i, i) for i in range(len(rows))]
    n, m = len(answers), len(rows)
    best = [[0.0] * (m + 1) for _ in range(n + 1)]
    scores = [[_score(a, r) for r in rows] for _, a in answers]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            pair = scores[i][j] + best[i + 1][j + 1] if scores[i][j] > 0 else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], pair)
    pairs, i, j = [], 0, 0
    while i < n and j < m:
        if scores[i][j] > 0 and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def compare(answer: Event, row: RequestRow) -> tuple[dict[str, list[Any]], int]:
    """({field: [log, reply]} of what differs, how many fields both tell)."""
    told = _told(answer) | _end(answer, row)
    differences, compared = {}, 0
    for ours, theirs in FIELDS:
        a, b = getattr(row, ours), told.get(theirs)
        if a is None or b is None:
            continue
        compared += 1
        if abs(a - b) > (MS_TOLERANCE if ours.endswith("_ms") else 0):
            differences[ours] = [a, b]
    return differences, compared


def _score(answer: Event, row: RequestRow) -> float:
    """How well an answer and a row fit: agreeing minus differing fields; 0 or less = not the same request."""
    outcome = answer.get("outcome")
    if outcome == "overflow" or row.status == "rejected":
        return 1.0 if outcome == "overflow" and row.status == "rejected" else 0.0
    differences, compared = compare(answer, row)
    if compared == 0:
        return 0.5 if (outcome, row.status) in NOT_TIMED else 0.0
    return compared - 2.0 * len(differences)


def _told(answer: Event) -> dict[str, Any]:
    timings = answer.get("timings") or {}
    reused, evaluated = timings.get("cache_n"), timings.get("prompt_n")
    return timings | {"prompt": reused + evaluated if reused is not None and evaluated is not None else None}


def _end(answer: Event, row: RequestRow) -> dict[str, Any]:
    """What the reply says of the row's release line: what the slot then held, and whether the window cut the reply.

    Nothing where the one does not follow from the other: after a context shift, with a draft model, in logs before 2024
    (they count the last token), for a request that did not end well or stands at the limit of both window and reply.
    """
    timings = answer.get("timings") or {}
    if row.status != "ok" or row.context_shifts or row.prompt_cut or row.draft_n is not None or row.truncated is None:
        return {}
    counts = [timings.get(name) for name in ("cache_n", "prompt_n", "predicted_n")]
    end: dict[str, Any] = {}
    if None not in counts and counts[2]:
        end["held"] = sum(counts) - 1
    if answer.get("outcome") == "cut" and answer.get("kind") == "window":
        end["truncated"] = True
    elif answer.get("outcome") == "reply" and answer.get("finish_reason") in ("stop", "tool_calls"):
        end["truncated"] = False
    return end


def _missing(answer: Event, row: RequestRow, sized: bool) -> tuple[str, ...]:
    """What a log ought to tell of a reply with timings: times and counts, its end, and sizes where it tells others'."""
    if not _timed(answer) or row.status == "rejected":
        return ()
    expected = (*TIMING, *(SIZES if sized else ()), "status")
    return tuple(name for name in expected if getattr(row, name) is None)


def _timed(answer: Event) -> bool:
    return (answer.get("timings") or {}).get("prompt_n") is not None


def _counts(row: RequestRow) -> bool:
    return row.status == "ok" and row.processed_tokens is not None


def _answers(events: Sequence[Event]) -> list[tuple[int, Event]]:
    """(number of the request event, its response) for every chat request, whatever its tag, in order."""
    waiting: dict[tuple[Any, Any, Any], int] = {}
    found = []
    for event in events:
        key = (event.get("step"), event.get("attempt"), event.get("tag"))
        if event["event"] == "request":
            waiting[key] = event["i"]
        elif event["event"] == "response" and key in waiting:
            found.append((waiting.pop(key), event))
    return found
