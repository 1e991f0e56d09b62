"""Small pieces of accessible HTML. Everything that comes from outside is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.plots.style import data_uri
from analysis.stats import Interval
from analysis.tables.arms import Spread

NOT_KNOWN = "not known"
NUMERIC = ' class="num"'
# Names of columns that say little to a newcomer; others are shown as they are, without underscores.
HEADINGS = {
    "n": "runs",
    "false_completion": "done, not solved",
    "false_finish": "done, nothing changed",
    "empty_completion": "done, empty reply",
    "untested_completion": "done, untested",
    "contradicted_completion": "done, tests failed",
    "truncated_as_done": "cut reply taken as done",
    "truncated_answers": "cut replies",
    "cut_by_window": "cut by the window",
    "cut_by_limit": "cut by the reply limit",
    "cut_unparsed": "not readable",
    "cut_kind": "cut by",
    "rejected_requests": "refused as too large",
    "cleared_nothing": "found nothing",
    "post_clear_requests": "requests after a clear",
    "post_clear_over_half": "over half evaluated",
    "post_clear_median_pct": "evaluated after a clear, %",
    "rereads_of_cleared": "re-reads of cleared",
    "prompt_tokens": "prompt",
    "reused_tokens": "reused",
    "evaluated_tokens": "evaluated",
    "new_tokens": "new",
    "recomputed_tokens": "recomputed",
    "generated_tokens": "written",
    "evaluated_pct": "evaluated, %",
    "prompts": "asked y/N",
    "auto_run": "ran unasked",
    "outside_path_commands": "asked, outside path",
    "outside_path_flagged": "of these flagged",
    "guard_restores": "test files put back",
    "tampered_tests": "tests changed",
    "peak_resident_bytes": "peak memory, bytes",
    "peak_gpu_bytes": "peak GPU memory, bytes",
    "read_per_s": "tokens read per s",
    "written_per_s": "tokens written per s",
}


def text(value: Any) -> str:
    """Escaped text of a value; null is said, not shown as nothing."""
    return escape(plain(value))


def plain(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return NOT_KNOWN
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def percent(found: Interval) -> str:
    """`2 of 3 (67 %, 21 to 94 %)`."""
    if found.estimate is None:
        return NOT_KNOWN
    count = round(found.estimate * found.n)
    words = f"{count} of {found.n}"
    if found.low is None or found.high is None:
        return words
    return f"{words} ({100 * found.estimate:.0f} %, {100 * found.low:.0f} to {100 * found.high:.0f} %)"


def spread(found: Spread) -> str:
    """Median with its interval where there is one, else with the range of few runs, which is no interval."""
    middle = found.median
    if middle.estimate is None:
        return NOT_KNOWN
    if middle.low is not None and middle.high is not None:
        return f"{middle.estimate:,.0f} ({middle.low:,.0f} to {middle.high:,.0f}, n = {middle.n})"
    if middle.n == 1:
        return f"{middle.estimate:,.0f} (n = 1)"
    return f"{middle.estimate:,.0f} (range {found.least:,.0f} to {found.most:,.0f}, n = {middle.n})"


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: Sequence[int] = (), cards: bool = False
) -> str:
    """A table with a caption and scopes; the first cell of a row is its heading.

    raw: columns that are HTML already. cards: on a narrow screen every row becomes a card (for long texts).
    """
    listed = [list(row) for row in rows]
    numeric = {i for i in range(1, len(head)) if any(_class(r[i]) == NUMERIC for r in listed)}
    top = "".join(f'<th scope="col"{NUMERIC if i in numeric else ""}>{escape(h)}</th>' for i, h in enumerate(head))
    body = []
    for row in listed:
        cells = []
        for i, value in enumerate(row):
            shown = str(value) if i in raw else text(value)
            if i == 0:
                cells.append(f'<th scope="row">{shown}</th>')
            else:
                named = f' data-label="{escape(head[i], quote=True)}"' if cards else ""
                cells.append(f"<td{_class(value)}{named}>{shown}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    label = escape(caption, quote=True)
    return (
        f'<div class="scroll{" cards" if cards else ""}" tabindex="0" role="region" aria-label="{label}">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _class(value: Any) -> str:
    if value is None or value is pd.NA:
        return ' class="null"'
    return NUMERIC if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def frame_table(caption: str, frame: pd.DataFrame) -> str:
    """A DataFrame as a table, columns under names for readers."""
    rows = [[_python(v) for v in row] for row in frame.itertuples(index=False)]
    return table(caption, [HEADINGS.get(str(c), str(c).replace("_", " ")) for c in frame.columns], rows)


def _python(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def image(drawn: Figure, alt: str, caption: str) -> str:
    """A figure with its alternative text: what it shows, in words and numbers."""
    return (
        f'<figure><div class="plot" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<img src="{data_uri(drawn)}" alt="{escape(alt, quote=True)}" loading="lazy"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def section(number: str, heading: str, *parts: str) -> str:
    return f'<section aria-labelledby="{number}"><h2 id="{number}">{escape(heading)}</h2>{"".join(parts)}</section>'


def paragraph(words: str, kind: str = "") -> str:
    return f"<p{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{escape(words)}</p>"


def listing(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(i)}</li>" for i in items) + "</ul>"


def pairs(caption: str, values: Mapping[str, Any]) -> str:
    """A two-column table; values of all kinds stand below one another, so all of them as words."""
    return table(caption, ["what", "value"], [(k, v if v is None else plain(v)) for k, v in values.items()])
