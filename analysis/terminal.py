"""The tables that a sweep shows at its end, on stdout: outcomes, hidden tests, cut replies, prompt cache, time.

Kinds of runs are never mixed: each has its own set of tables, named in their titles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.report.html import percent, plain, spread
from analysis.tables import load, runs
from analysis.tables.arms import arm_names, by_arm, summaries
from analysis.tables.records import Source, all_problems
from harness.cli.console import results

CUTS = {
    "requests": "requests",
    "cut_by_window": "cut by window",
    "cut_by_limit": "by limit",
    "cut_unparsed": "unparsed",
    "truncated_as_done": "taken as done",
    "rejected_requests": "refused",
}
CACHE = {
    "clears": "clears",
    "cleared_nothing": "of nothing",
    "post_clear_requests": "requests after",
    "post_clear_over_half": "over half",
    "reused_tokens": "reused",
    "new_tokens": "new",
    "recomputed_tokens": "recomputed",
    "generated_tokens": "generated",
}
TIMES = {
    "steps": "steps",
    "seconds": "seconds",
    "prompt_seconds": "reading",
    "writing_seconds": "writing",
    "tool_seconds": "tools",
    "harness_seconds": "harness",
}


def print_tables(source: Source, *, console: Console | None = None) -> None:
    """Prints the tables of all finished runs; problems go to stderr, one line each."""
    out = console or results()
    records = load(source, short_arms=True)
    for kind in records.kinds:
        for table in tables_of(runs(records.of_kind(kind)), kind):
            out.print(table)
            out.print()
    for problem in all_problems(records):
        print(problem, file=sys.stderr)


def tables_of(table: pd.DataFrame, kind: str) -> list[Table]:
    """The five tables of one kind of runs."""
    return [
        _outcomes(table, kind),
        _hidden(table, kind),
        _sums(table, CUTS, f"Cut replies and refused requests ({kind} runs, sums)"),
        _sums(table, CACHE, f"Prompt cache ({kind} runs, sums; tokens)"),
        _sums(table, TIMES, f"Steps and seconds ({kind} runs, medians)", "median"),
    ]


def _outcomes(table: pd.DataFrame, kind: str) -> Table:
    rows = [
        (
            s.arm,
            s.n,
            _endings(table[table["arm"] == s.arm]),
            percent(s.solved),
            percent(s.false_completion),
            spread(s.evaluated),
        )
        for s in summaries(table)
    ]
    head = ["arm", "runs", "ended", "solved (95 %)", "false completions (95 %)", "evaluated tokens, median"]
    return _table(f"Outcomes ({kind} runs)", head, rows)


def _endings(rows: pd.DataFrame) -> str:
    counts = rows["ended_how"].fillna("not known").value_counts()
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def _hidden(table: pd.DataFrame, kind: str) -> Table:
    """Hidden tests by arm and seed; * marks a run that declared itself done."""
    seeds = sorted(int(s) for s in table["seed"].dropna().unique())
    tasks = sorted(table["task"].dropna().unique())
    rows = []
    for task in tasks:
        for arm in arm_names(table):
            chosen = table[(table["arm"] == arm) & (table["task"] == task)]
            if not chosen.empty:
                rows.append((arm, task, *(_cell(chosen[chosen["seed"] == seed]) for seed in seeds)))
    head = ["arm", "task", *(f"seed {s}" for s in seeds)]
    return _table(f"Hidden tests passed ({kind} runs; * declared done)", head, rows)


def _cell(chosen: pd.DataFrame) -> str:
    if chosen.empty:
        return ""
    row = chosen.iloc[0]
    if pd.isna(row["hidden_passed"]):
        return "?"
    done = pd.notna(row["declared_done"]) and bool(row["declared_done"])
    return f"{row['hidden_passed']}/{row['hidden_total']}{'*' if done else ''}"


def _sums(table: pd.DataFrame, columns: dict[str, str], title: str, how: str = "sum") -> Table:
    found = by_arm(table, list(columns), how)
    rows = [tuple(row) for row in found.itertuples(index=False)]
    return _table(title, ["arm", "runs", *columns.values()], rows)


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    listed = [[plain(v.item() if hasattr(v, "item") else v) for v in row] for row in rows]
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in listed:
        # Text, not markup: an arm's or task's name may hold brackets.
        table.add_row(*(Text(value) for value in row))
    return table
