"""The room's findings as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from harness.prereg.checking import Report
from harness.prereg.power import PowerReport
from harness.prereg.registering import Registered
from harness.prereg.score import Scores
from harness.prereg.separate import MOST, POWER

_WORDS = {"held_in_wording_only": "held in wording only"}


def registered_lines(done: Registered) -> Iterator[str]:
    """For every claim a table that refutes it, or its name as vacuous; then what to do."""
    for check in done.checks:
        if check.refuted is None:
            yield f"{check.prediction}: VACUOUS? none found in {check.tries} tables that refutes it: {check.claim}"
        else:
            yield f"{check.prediction}: can lose: {check.claim}"
            for line in check.refuted.lines():
                yield f"    is false for {line}"
        if not check.can_hold:
            yield f"{check.prediction}: CAN'T HOLD? none found in {check.tries} tables on which it is true: {check.claim}"
    yield ""
    if done.is_new:
        what = "registered" if done.version.reason is None else f"amended ({done.version.reason})"
        yield f"{what}: version {done.version.number}, digest {done.version.digest[:12]}, {done.path}"
    else:
        yield f"already registered: version {done.version.number}, digest {done.version.digest[:12]}; nothing changed"
    yield "now commit it, before the first run:"
    yield f"    {done.commit_command}"


def report_lines(report: Report) -> Iterator[str]:
    """One block per prediction: verdict, provenance, wording, and why."""
    for line in report.lines:
        judged = line.judged
        version = f" [version {line.version}: {line.amended}]" if line.amended else ""
        verdict = _WORDS.get(judged.verdict, str(judged.verdict))
        yield f"{judged.prediction.id}: {verdict.upper()} ({line.standing.word}){version}"
        yield f"    {judged.prediction.wording}"
        yield f"    why: {judged.why}"
        if judged.runs:
            yield f"    runs: {', '.join(judged.runs)}"
        if judged.missing:
            yield f"    missing: {'; '.join(judged.missing)}"
        yield f"    {line.standing.word}: {line.standing.why}"
        for note in line.standing.notes:
            yield f"    note: {note}"
    counts = [
        f"{len(list(group))} {_WORDS.get(word, word)}"
        for word, group in groupby(sorted(str(line.judged.verdict) for line in report.lines))
    ]
    yield ""
    yield f"{report.experiment}: {', '.join(counts)}"
    yield from score_lines(report.scores)
    for problem in report.problems:
        yield f"problem: {problem}"
    if report.limits:
        yield "what this check can't see:"
        yield from (f"    {limit}" for limit in report.limits)


def score_lines(scores: Scores) -> Iterator[str]:
    """Brier and log score beside the baselines, and the list; nothing without probabilities."""
    if scores.brier is None or scores.log is None:
        return
    what = "1 probability" if len(scores.scored) == 1 else f"{len(scores.scored)} probabilities"
    yield f"scores of {what} (0 is perfect): Brier {scores.brier:.3f}, log {scores.log:.3f}"
    for name, values in scores.baselines.items():
        yield f"    {name}: Brier {values['brier']:.3f}, log {values['log']:.3f}"
    if scores.curve is None:
        for one in scores.scored:
            yield f"    {one.id}: said {one.probability:.2f}, {'held' if one.held else 'did not hold'}"
        return
    for one_bin in scores.curve:
        yield (
            f"    said {one_bin['from']:.1f} to {one_bin['to']:.1f} (mean {one_bin['mean_probability']:.2f}): "
            f"{one_bin['held']} of {one_bin['n']} held"
        )


def power_lines(report: PowerReport) -> Iterator[str]:
    """How often each prediction would hold, then which arms could be told apart."""
    for (name, seeds), chances in groupby(report.chances, key=lambda c: (c.assumption, c.seeds)):
        yield f"if {name}, {seeds} seeds per arm ({report.simulations} simulated grids):"
        for chance in chances:
            others = {k: v for k, v in chance.verdicts.items() if k != "held"}
            rest = ", ".join(f"{v / report.simulations:.0%} {_WORDS.get(k, k)}" for k, v in others.items())
            yield (
                f"    {chance.prediction}: holds {chance.held:.0%} of the time "
                f"({chance.low:.0%} to {chance.high:.0%}){'; ' + rest if rest else ''}"
            )
            if chance.undetermined_because:
                yield f"        undetermined because {chance.undetermined_because[:300]}"
    for s in report.separations:
        needed = f"{s.needed} runs per arm" if s.needed else f"more than {MOST} runs per arm"
        yield (
            f"if {s.assumption}: {s.column} {s.rates[0]:g} ({s.first}) against {s.rates[1]:g} ({s.second}): "
            f"{needed} for p < 0.05 in {POWER:.0%} of experiments"
        )
    yield from report.remarks()
