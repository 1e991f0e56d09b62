"""The scoreboard as a table: every prediction, its verdict, whether it came before the runs, and the numbers behind it."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from analysis.report.html import paragraph, plain, table

Verdict = Mapping[str, Any]
LONGEST = 160


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """id, wording, verdict, provenance, and why: in short, the rows behind it folded away."""
    if not verdicts:
        return paragraph("No predictions were written down for these runs.")
    rows = [
        (v.get("id"), v.get("wording"), _coloured(str(v.get("verdict"))), v.get("provenance"), _why(v))
        for v in verdicts
    ]
    head = ["id", "prediction", "verdict", "written down", "why"]
    caption = f"Predictions and their verdicts: {tally(verdicts)}"
    return table(caption, head, rows, raw=(2, 4), cards=True) + paragraph(
        "Registered: committed before the first run. Late: written down when runs were there already. Held in wording only: true "
        "as written, but not in the meaning that was stated with it. Undetermined: the runs do not hold what it takes.",
        "small",
    )


def tally(verdicts: Sequence[Verdict]) -> str:
    """`5 held, 1 failed, 1 undetermined`: the verdicts that occur, most frequent first."""
    counts = Counter(str(v.get("verdict")).replace("_", " ") for v in verdicts)
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


def because(verdict: Verdict) -> str:
    """Why a verdict is what it is, in a line: the numbers of its claims, or what is missing for them."""
    known = {
        str(v["source"]): v["value"] for v in verdict.get("values") or () if isinstance(v, Mapping) and "source" in v
    }
    why = str(verdict.get("why") or verdict.get("reason") or "")
    if verdict.get("verdict") != "undetermined" and known and all(v is not None for v in known.values()):
        return textwrap.shorten("; ".join(f"{k} = {_number(v)}" for k, v in known.items()), LONGEST, placeholder=" …")
    return textwrap.shorten(why.split(" [")[0], LONGEST, placeholder=" …")


def _number(value: Any) -> str:
    return plain(int(value)) if isinstance(value, float) and value.is_integer() else plain(value)


def _why(verdict: Verdict) -> str:
    short, whole = because(verdict), str(verdict.get("why") or "")
    folded = [] if whole in ("", short) else [whole]
    if verdict.get("why") and verdict.get("reason"):
        folded.append(f"Expected because: {verdict['reason']}")
    more = "".join(paragraph(words) for words in folded)
    return escape(short) + (f'<details class="rows"><summary>in full</summary>{more}</details>' if more else "")


def _coloured(name: str) -> str:
    words = name.replace("_", " ")
    kind = name if name in ("held", "failed") else ""
    return f'<span class="verdict {kind}">{words}</span>' if re.fullmatch(r"[\w ]+", words) else ""
