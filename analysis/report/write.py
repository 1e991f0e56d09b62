"""The report: one HTML file that opens offline. First screen: question, verdicts, three numbers per arm with intervals; then
tables and figures, every run with its transcript, the executed notebooks, and where all of it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape, unescape
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report import facts
from analysis.report.figures import cache_figures, cost_figures, outcome_figures
from analysis.report.html import paragraph, plain, section
from analysis.report.notebooks import NAMES, NotebookError, execute, to_html
from analysis.report.runs_part import runs_part
from analysis.report.verdicts import verdict_table
from analysis.tables import cross_check, differences, load, requests, runs
from analysis.tables.published import published_runs
from analysis.tables.records import Records, folder_for, need_runs
from harness.record.folder import write_atomically

# Nothing is fetched from anywhere, whatever a model wrote into a transcript.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "img-src data:",
        "style-src 'unsafe-inline'",
        "script-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
KIND_WORDS = {
    "real": "Runs of a real model on a real server.",
    "scripted": "Runs on a scripted double of the server: a simulation, not a measurement of a model.",
    "tape": "Replays of recorded traffic.",
}


def write_report(
    runs_root: Path,
    verdicts: Sequence[Mapping[str, Any]],
    out_path: Path,
    *,
    experiment_dir: Path | None = None,
    published: Path | None = None,
    notebooks: Sequence[str] = NAMES,
) -> Path:
    """Writes the report on all finished runs at or below `runs_root` and returns its path.

    verdicts: dicts with id, wording, verdict, provenance, values, reason. experiment_dir: where plan.md is. published: a file of
    published facts, shown beside the own runs. notebooks: which to execute (one that fails is named in the
    report); empty for none.

    Raises:
        RecordError: no such folder, or no finished run in it.
    """
    records = load(runs_root, short_arms=True)
    need_runs(records, "to report on")
    folder_for(out_path.parent)
    title, asked = facts.question(experiment_dir)
    experiments = sorted({str(r.result.get("experiment")) for r in records.runs})
    title = title or f"Experiment {', '.join(experiments)}"
    tables = {
        kind: (runs(part), requests(part), part) for kind, part in ((k, records.of_kind(k)) for k in _kinds(records))
    }
    parts = [
        _first_screen(title, asked, verdicts, {k: t[0] for k, t in tables.items()}),
        *(_kind_part(kind, *of_kind) for kind, of_kind in tables.items()),
        _published_part(published),
        *_runs_section(records),
        _notebook_part(runs_root, verdicts, notebooks),
        section(
            "provenance",
            "Where this comes from",
            facts.provenance(
                records,
                cross_check(records),
                differences(records),
                [w for t in tables.values() for w in facts.alarms(t[1])],
            ),
        ),
    ]
    write_atomically(out_path, _page(title, [p for p in parts if p]))
    return out_path


def _kinds(records: Records) -> list[str]:
    return sorted(records.kinds, key=lambda k: (k != "real", k))


def _first_screen(
    title: str, asked: str, verdicts: Sequence[Mapping[str, Any]], tables: Mapping[str, pd.DataFrame]
) -> str:
    kinds = " ".join(f'<span class="kind">{len(t)} {escape(k)} runs</span>' for k, t in tables.items())
    words = "".join(f"<p>{escape(p)}</p>" for p in asked.split("\n\n")) if asked else ""
    numbers = "".join(
        (f"<h3>{escape(k)} runs</h3>" if len(tables) > 1 else "") + facts.three_numbers(t) for k, t in tables.items()
    )
    return (
        f'<header><h1>{escape(title)}</h1><p>{kinds}</p><div class="question">{words}</div></header>'
        f"{verdict_table(verdicts)}{numbers}"
    )


def _kind_part(kind: str, table: pd.DataFrame, asked: pd.DataFrame, records: Records) -> str:
    """All tables and figures of one kind of runs."""
    return "".join(
        [
            section(
                f"{kind}-outcomes",
                f"Outcomes ({kind} runs)",
                paragraph(KIND_WORDS.get(kind, "")),
                *outcome_figures(table),
                facts.outcome_tables(table),
                facts.cut_table(table),
            ),
            section(
                f"{kind}-cache",
                f"Window and prompt cache ({kind} runs)",
                facts.cache_tables(table, asked),
                *cache_figures(records, asked),
            ),
            section(
                f"{kind}-costs", f"Tokens and seconds ({kind} runs)", facts.model_table(table), *cost_figures(table)
            ),
            section(f"{kind}-approvals", f"Commands and tests ({kind} runs)", facts.approval_table(table)),
        ]
    )


def _published_part(path: Path | None) -> str:
    if path is None:
        return ""
    table = published_runs(path)
    return section(
        "published",
        "The articles' own results, for comparison",
        paragraph(
            "As the articles state them; what they do not state is not known. They used another model and machine."
        ),
        facts.three_numbers(table),
        *outcome_figures(table.assign(seed=pd.array([pd.NA] * len(table), dtype="Int64"))),
    )


def _runs_section(records: Records) -> list[str]:
    pieces, data = runs_part(records)
    return [section("runs", f"Every run ({len(records.runs)})", pieces), data]


def _notebook_part(root: Path, verdicts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    if not names:
        return ""
    try:
        executed = execute(names, root, verdicts)
    except NotebookError as e:
        # A report without its notebooks is worth more than none; it says what is missing.
        return section("notebooks", "Notebooks", paragraph(f"The notebooks could not be executed: {e}."))
    pieces = [
        f"<details><summary>{escape(name.replace('_', ' '))}</summary>"
        f'<div class="notebook">{_lower_headings(to_html(notebook))}</div></details>'
        for name, notebook in executed.items()
    ]
    return section("notebooks", "Notebooks, as executed for this report", *pieces)


def _lower_headings(body: str) -> str:
    """A notebook's h1 and h2 stand below the report's own."""
    for level in (2, 1):
        body = body.replace(f"<h{level}", f"<h{level + 2}").replace(f"</h{level}>", f"</h{level + 2}>")
    return body


def _page(title: str, parts: Sequence[str]) -> str:
    style, script = (
        resources.files(__package__).joinpath(f).read_text(encoding="utf-8") for f in ("page.css", "page.js")
    )
    links = "".join(f'<li><a href="#{i}">{escape(w)}</a></li>' for i, w in _headings(parts))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(plain(title))}</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#main">To the content</a><nav aria-label="Sections"><ul>{links}</ul></nav>'
        f'<main id="main">{"".join(parts)}</main><script>{script}</script></body></html>\n'
    )


def _headings(parts: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (i, unescape(w))
        for p in parts
        for i, w in re.findall(r'<section aria-labelledby="([\w-]+)"><h2 id="[\w-]+">([^<]*)</h2>', p)
    ]
