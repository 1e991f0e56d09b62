"""Why a claim holds, fails or is undetermined, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from harness.prereg.language import Finding
from harness.prereg.language.rows import shown_value
from harness.prereg.language.values import Gap, Null, Reasons, Truth

_ROWS_SHOWN = 6
_ROW_KEYS = ("row", "run_id", "result")


def numbers_behind(truth: Truth, findings: Sequence[Finding]) -> str:
    """A claim's numbers with the rows they come from; for an undecided one first what is not known."""
    numbers = ", ".join(f"{finding.source} = {_shown(finding)}{_rows(finding)}" for finding in findings)
    if truth.value is None:
        return explain(truth.because) + (f" [{numbers}]" if numbers else "")
    unknown = tuple(dict.fromkeys(reason for finding in findings for reason in finding.unknown))
    spare = f" (decided whatever this is: {explain(unknown)})" if unknown else ""
    return (numbers or "no table is looked at") + spare


def _shown(finding: Finding) -> str:
    if isinstance(finding.value, bool):
        return str(finding.value).lower()
    if finding.value is not None:
        return f"{finding.value:.6g}"
    if finding.low is None and finding.high is None:
        return "not known"
    if finding.low is None:
        return f"at most {finding.high:.6g}"
    return f"at least {finding.low:.6g}" if finding.high is None else f"{finding.low:.6g} to {finding.high:.6g}"


def _rows(finding: Finding) -> str:
    """The rows behind a truth or a number, those that decided a truth alone; at most a few."""
    rows = list(finding.rows)
    if isinstance(finding.value, bool):
        witnesses = [row for row in rows if row["result"] is (not finding.source.startswith("all("))]
        rows = witnesses or rows
    told = []
    for row in rows:
        columns = ", ".join(f"{k}={shown_value(v)}" for k, v in row.items() if k not in _ROW_KEYS and v is not None)
        told.append((row["row"], columns))
    blank = sum(not columns for _, columns in told)
    if blank > 1:  # the missing cells of a grid that goes on: the reason names them once
        told = [(name, columns) for name, columns in told if columns]
    texts = [f"{name}: {columns or 'not known'}" for name, columns in told[:_ROWS_SHOWN]]
    if len(told) > _ROWS_SHOWN:
        texts.append(f"and {len(told) - _ROWS_SHOWN} more")
    if blank > 1:
        texts.append(f"nothing is known of {blank} rows")
    return f"{_interval(finding)} ({'; '.join(texts)})" if texts else ""


def _interval(finding: Finding) -> str:
    """What belongs to a paired comparison: pairs, interval, and which of the two decides."""
    if "pairs" not in finding.facts:
        return ""
    pairs, interval = finding.facts["pairs"], finding.facts["interval"]
    assert isinstance(pairs, list)
    count = f"{len(pairs)} pair{'' if len(pairs) == 1 else 's'}"
    if not isinstance(interval, list):
        return f" [{count}, no interval; the {finding.facts['decided_by']} decides]"
    bounds = f"{interval[0]:.4g} to {interval[1]:.4g}"
    return f" [{count}, {finding.facts['level']:.0%} interval {bounds}; the {finding.facts['decided_by']} decides]"


def explain(reasons: Reasons) -> str:
    """The reasons for an undetermined verdict in one line; nulls of one column, and columns null in the same rows, go together."""
    nulls: dict[str, list[str]] = {}
    texts = []
    for reason in reasons:
        if isinstance(reason, Null):
            nulls.setdefault(reason.column, []).append(reason.row)
        elif isinstance(reason, Gap):
            texts.append(str(reason))
    together: dict[tuple[str, ...], list[str]] = {}
    for column, rows in nulls.items():
        together.setdefault(tuple(rows), []).append(column)
    for rows, columns in together.items():
        *others, last = columns
        names = f"{', '.join(others)} and {last} of {_names(rows)} are" if others else f"{last} of {_names(rows)} is"
        texts.append(f"{names} not known")
    return "; ".join(texts) or "nothing decides it"


def _names(rows: Sequence[str]) -> str:
    more = f" and {len(rows) - _ROWS_SHOWN} more" if len(rows) > _ROWS_SHOWN else ""
    return ", ".join(rows[:_ROWS_SHOWN]) + more
