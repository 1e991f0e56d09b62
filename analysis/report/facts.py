"""The report's tables of one kind of runs, its provenance, and the question from plan.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.compare import compare_repeats
from analysis.report.html import frame_table, listing, paragraph, percent, plain, spread, table
from analysis.tables.arms import arm_names, by_arm, endings, summaries
from analysis.tables.join import line, words
from analysis.tables.records import Records, all_problems

ARM_WORDS = (
    "An arm is one combination of settings: the agent, the window of the server's slot (4K = 4,096 tokens), and what else "
    "differs. Solved: all hidden tests pass on the final code. False completion: the agent declared itself done and had not "
    "solved the task. Evaluated: prompt tokens that the server had to read because its cache did not hold them."
)
CACHE_WORDS = (
    "A server keeps what it computed for the last prompt. Reused tokens came from there; evaluated ones had to be read: new "
    "ones for the first time, recomputed ones again. A clear replaces old content by placeholders to make room in the window; one "
    "that found nothing to replace is counted apart."
)
CAUSE_ORDER = ("cold", "append", "clear", "summary", "cut_retry", "template", "checkpoint", "unexplained")


def question(experiment: Path | None) -> tuple[str, str]:
    """(title, question) of plan.md: its first heading, and the section or first paragraph that asks."""
    path = None if experiment is None else experiment / "plan.md"
    if path is None or not path.is_file():
        return "", ""
    text = path.read_text(encoding="utf-8")
    title = next((m.group(1) for m in re.finditer(r"^#\s+(.+)$", text, re.M)), "")
    text = re.sub(r"^\*\*Question\.?\*\*\s*", "", text, flags=re.M)
    asked = re.search(r"^#{2,}\s+Question\s*\n+(.+?)(?=\n#|\Z)", text, re.M | re.S | re.I)
    if asked is None:
        asked = re.search(r"^(?!#)(\S.+?)(?=\n\s*\n|\Z)", re.sub(r"^#.*\n", "", text, flags=re.M), re.M | re.S)
    return title, _unmarked(asked.group(1).strip()) if asked else ""


def _unmarked(words: str) -> str:
    """Markdown's emphasis and code marks left out; the report shows plain text."""
    return re.sub(r"(\*\*|`)(.+?)\1", r"\2", words)


def three_numbers(runs: pd.DataFrame) -> str:
    """Per arm: solved, false completions, evaluated tokens, with intervals."""
    rows = [(s.arm, s.n, percent(s.solved), percent(s.false_completion), spread(s.evaluated)) for s in summaries(runs)]
    return table(
        "Three numbers per arm (95 % Wilson intervals; medians with range where n is too small for an interval)",
        ["arm", "runs", "solved", "false completions", "evaluated prompt tokens per run"],
        rows,
        cards=True,
    ) + paragraph(ARM_WORDS, "small")


def outcome_tables(runs: pd.DataFrame) -> str:
    columns = [
        "declared_done",
        "solved",
        "false_completion",
        "false_finish",
        "empty_completion",
        "untested_completion",
        "contradicted_completion",
        "truncated_as_done",
        "worse_than_start",
    ]
    return frame_table("How runs ended, by arm", endings(runs)) + frame_table(
        "Done and solved: how many runs of each arm", by_arm(runs, columns)
    )


def cut_table(runs: pd.DataFrame) -> str:
    columns = [
        "requests",
        "truncated_answers",
        "cut_by_window",
        "cut_by_limit",
        "cut_unparsed",
        "truncated_as_done",
        "rejected_requests",
    ]
    return frame_table("Cut replies and refused requests, sums by arm", by_arm(runs, columns))


def cache_tables(runs: pd.DataFrame, requests: pd.DataFrame) -> str:
    columns = [
        "clears",
        "cleared_nothing",
        "post_clear_requests",
        "post_clear_over_half",
        "rereads_of_cleared",
        "prompt_tokens",
        "reused_tokens",
        "evaluated_tokens",
        "new_tokens",
        "recomputed_tokens",
        "generated_tokens",
    ]
    sums = by_arm(runs, columns)
    known = requests.dropna(subset=["cause"])
    causes = pd.crosstab(known["arm"], known["cause"])
    causes = (
        causes.reindex(arm_names(known))[[c for c in CAUSE_ORDER if c in causes.columns]]
        .rename_axis(columns=None)
        .reset_index()
    )
    after = ["post_clear_median_pct"] if runs["post_clear_median_pct"].notna().any() else []
    amplification = by_arm(runs, ["amplification", *after], "median")
    return (
        paragraph(CACHE_WORDS)
        + frame_table("Prompt cache, sums by arm (tokens)", sums)
        + frame_table(
            "Amplification (evaluated / new; 1 = nothing was read twice), medians over runs",
            amplification,
        )
        + frame_table("Why prompts were evaluated, requests by cause", causes)
    )


def approval_table(runs: pd.DataFrame) -> str:
    columns = [
        "bash_commands",
        "prompts",
        "auto_run",
        "refused",
        "outside_path_commands",
        "outside_path_flagged",
        "guessed_paths",
        "guard_restores",
        "tampered_tests",
        "identical_writes",
        "repeated_calls",
    ]
    return frame_table("Commands, approvals, tests, repeats: sums by arm", by_arm(runs, columns))


def model_table(runs: pd.DataFrame) -> str:
    """Models side by side, when there are several."""
    if runs["model"].nunique() < 2:
        return ""
    as_arm = runs.assign(arm=runs["model"])
    speed = as_arm.assign(
        read_per_s=as_arm["evaluated_tokens"] / as_arm["prompt_seconds"],
        written_per_s=as_arm["generated_tokens"] / as_arm["writing_seconds"],
    )
    columns = ["steps", "seconds", "read_per_s", "written_per_s", "peak_resident_bytes", "peak_gpu_bytes"]
    return frame_table(
        "Models side by side (medians over runs)", by_arm(speed, columns, "median").rename(columns={"arm": "model"})
    )


def alarms(requests: pd.DataFrame) -> list[str]:
    """Requests whose evaluated tokens nothing explains, one line each."""
    rows = requests[(requests["cause"] == "unexplained").fillna(False)]
    return [
        f"run {row.run_id}, step {plain(row.step)}: {plain(row.evaluated)} of {plain(row.prompt)} prompt tokens were evaluated "
        f"and nothing says why (unexplained; reused {plain(row.reused)})"
        for row in rows.itertuples()
    ]


def provenance(
    records: Records,
    check: Mapping[str, Any],
    differences: Sequence[Mapping[str, Any]],
    alarms: Sequence[str] = (),
) -> str:
    """Commits, digests, server, model, departures, the cross-check line, and everything that was not as it should be."""
    manifests = [r.manifest for r in records.runs]
    facts = {
        "study commit": _values(manifests, "study", "commit"),
        "study tree clean": _values(manifests, "study", "clean"),
        "harness": _values(manifests, "harness", "version"),
        "harness commit": _values(manifests, "harness", "commit"),
        "registration digest": _values(manifests, "registration", "digest"),
        "registration commit": _values(manifests, "registration", "commit"),
        "server": _values(manifests, "server", "kind"),
        "server build": _values(manifests, "server", "build"),
        "model": _values(manifests, "model", "name"),
        "model sha256": _values(manifests, "model", "sha256"),
        "task digest": _values(manifests, "task", "digest"),
        "processor": _values(manifests, "host", "cpu"),
    }
    parts = [
        table(
            "What the runs were made with (number of runs behind each value)", ["what", "value"], list(facts.items())
        ),
        paragraph(f"Replies against the server's own log: {line(dict(check))}."),
    ]
    if check.get("without_log"):
        parts.append(paragraph(f"{check['without_log']} runs have no server log here."))
    departures = Counter(
        (k, _setting(v[0]), _setting(v[1])) for m in manifests for k, v in (m.get("departures") or {}).items()
    )
    if departures:
        rows = [(k, a, b, n) for (k, a, b), n in sorted(departures.items())]
        parts.append(table("Departures from the published settings", ["setting", "published", "used", "runs"], rows))
    else:
        parts.append(paragraph("No departures from the published settings."))
    parts.append(_repeats(records))
    wrong = [words(d) for d in check.get("details", [])] + list(alarms)
    wrong += [
        f"run {d['run_id']}: result.json says {d['column']} = {plain(d['stored'])}, the record gives {plain(d['derived'])}"
        for d in differences
    ]
    wrong += list(all_problems(records)) + [p for p in check.get("problems", []) if p not in all_problems(records)]
    parts.append(
        paragraph("What did not fit:") + listing(wrong)
        if wrong
        else paragraph("Nothing was left out, and every result was derived again alike.")
    )
    return "".join(parts)


def _setting(value: Any) -> str:
    """A setting in words; null is a setting that is not made, not one that is not known."""
    return "none" if value is None else plain(value)


def _repeats(records: Records) -> str:
    """Where a cell and seed was run twice: whether both runs went the same way, and the first step at which they did not."""
    found = compare_repeats(records)
    if not found:
        return ""
    same = sum(c.first is None for _, _, c in found)
    rows = [(a.result.get("run_id"), a.row.get("arm"), a.result.get("seed"), c.line()) for a, _, c in found]
    return table(
        f"Cells and seeds that were run twice: {same} of {len(found)} went the same way, times aside",
        ["run", "arm", "seed", "second run against the first"],
        rows,
        cards=True,
    )


def _values(manifests: Sequence[Mapping[str, Any]], *keys: str) -> str:
    found: Counter[str] = Counter()
    for manifest in manifests:
        value: Any = manifest
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        none = "none" if keys[0] == "registration" else plain(None)
        found[none if value is None else plain(value)] += 1
    return "; ".join(f"{value} ({n})" for value, n in found.most_common())
