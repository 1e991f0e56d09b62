"""Every run of a report: a line that is readable without scripts, and its transcript, packed until it is opened."""

from __future__ import annotations

import base64
import json
import zlib
from html import escape

from analysis.report.html import HEADINGS, pairs, plain
from analysis.report.transcript import transcript
from analysis.tables.arms import natural_order
from analysis.tables.records import Record, Records

# The whole page stays under 15 MB: transcripts get this many bytes; longer texts are shortened step by step until they fit.
BUDGET = 9_000_000
LENGTHS = (None, 20_000, 6_000, 2_000, 700, 250)
FACTS = (
    "task",
    "model",
    "steps",
    "ended_how",
    "declared_done",
    "solved",
    "hidden_passed",
    "hidden_total",
    "files_changed",
    "truncated_answers",
    "cut_by_window",
    "cut_by_limit",
    "rejected_requests",
    "clears",
    "guard_restores",
    "evaluated_tokens",
    "recomputed_tokens",
    "generated_tokens",
    "seconds",
)


def runs_part(records: Records) -> tuple[str, str]:
    """(one collapsible piece per run, the packed transcripts)."""
    ordered = sorted(
        records.runs,
        key=lambda r: (natural_order(str(r.row.get("arm"))), str(r.row.get("task")), r.result.get("seed") or 0),
    )
    packed, longest = pack(ordered)
    note = (
        ""
        if longest is None
        else f"<p>Texts longer than {longest} characters are shortened here; the run folders hold them whole.</p>"
    )
    pieces = [_piece(record) for record in ordered]
    data = [
        f'<script type="application/octet-stream" id="t-{escape(str(r.result.get("run_id")), quote=True)}">{p}</script>'
        for r, p in zip(ordered, packed, strict=True)
    ]
    return note + "".join(pieces), "".join(data)


def pack(records: list[Record], budget: int = BUDGET) -> tuple[list[str], int | None]:
    """(deflated transcripts in base64, the length texts were cut to; None when nothing was cut)."""
    blocks = [transcript(r.events) for r in records]
    packed: list[str] = []
    for longest in LENGTHS:
        packed = [_pack([b.as_list(longest) for b in of_run]) for of_run in blocks]
        if sum(map(len, packed)) <= budget:
            return packed, longest
    return packed, LENGTHS[-1]


def _pack(blocks: list[list[object]]) -> str:
    data = json.dumps(blocks, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def _piece(record: Record) -> str:
    row = record.row
    solved = {True: "solved", False: "not solved"}.get(row.get("solved"), "not graded")  # type: ignore[arg-type]
    done = "declared done" if row.get("declared_done") else f"ended: {plain(row.get('ended_how')).replace('_', ' ')}"
    what = f"{plain(row.get('arm'))}, {plain(row.get('task'))}, seed {plain(row.get('seed'))}"
    head = f"{what}: {solved}, {done}, {plain(row.get('steps'))} {'step' if row.get('steps') == 1 else 'steps'}"
    facts = pairs(f"Run {plain(row.get('run_id'))}", {HEADINGS.get(k, k.replace("_", " ")): row.get(k) for k in FACTS})
    run = escape(str(row.get("run_id")), quote=True)
    return (
        f'<details id="run-{run}"><summary>{escape(head)}</summary>{facts}'
        f'<div class="transcript" data-run="{run}">The transcript is shown by a small script in this page; without scripts read '
        "events.jsonl in the run folder.</div></details>"
    )
