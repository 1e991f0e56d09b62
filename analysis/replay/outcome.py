"""What a replay found: per policy the sums over all runs, each policy paired with the first one run by run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from analysis.replay.lab import Request, Through
from harness.agent.context.history import THRASH_REQUESTS

FIXED = (
    "Replay keeps the model's choices fixed: every policy sees the recorded replies and results. What the model would have "
    "done under another policy only a live run can tell."
)


@dataclass(frozen=True)
class Replay:
    """throughs: one per run and policy. checks: recorded requests whose prompt was rebuilt, and how many to the token.

    notes: what the reader must know (a stand-in summary, a shifting cache that is supposed). problems: runs left out, and why.
    """

    runs: tuple[str, ...]
    policies: tuple[str, ...]
    throughs: tuple[Through, ...]
    checks: dict[str, int]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, policy: str) -> list[Through]:
        return [t for t in self.throughs if t.policy == policy]

    def document(self) -> dict[str, Any]:
        """The JSON document of `calledshot replay --json`."""
        base = self.policies[0]
        return {
            "runs": list(self.runs),
            "policies": {p: sums(self.of(p)) | paired(self.of(p), self.of(base)) for p in self.policies},
            "compared_with": base,
            "prompts_checked": self.checks["checked"],
            "prompts_exact": self.checks["exact"],
            "notes": [FIXED, *self.notes],
            "problems": list(self.problems),
        }


def sums(throughs: Sequence[Through]) -> dict[str, Any]:
    """A policy's columns over its runs; tokens unless the name says otherwise. None where there is nothing to divide by."""
    requests = [r for t in throughs for r in t.requests]
    clears = [(t, n) for t in throughs for n in range(len(t.clears))]
    evaluated, new = sum(r.evaluated for r in requests), sum(r.new for r in requests)
    freed = sum(c.freed for t in throughs for c in t.clears)
    after = [r for r in requests if r.after_clear]
    cost = sum(r.recomputed for r in after)
    gaps = [gap for t, n in clears if (gap := _steps_until_next(t, n)) is not None]
    turns = sum(t.turns for t in throughs)
    recomputed = evaluated - new
    return {
        "recomputed": recomputed,
        "evaluated": evaluated,
        "clears": len(clears),
        "overflows": sum(t.overflows for t in throughs),
        "new": new,
        "reused": sum(r.reused for r in requests),
        "prompt": sum(r.prompt for r in requests),
        "generated": sum(r.generated for r in requests),
        "amplification": _ratio(evaluated, new),
        "steps": turns,
        "requests": len(requests),
        "recomputed_per_step": _ratio(recomputed, turns),
        "freed": freed,
        "recomputed_after_clears": cost,
        "yield": _ratio(freed, cost),
        "steps_between_clears": median(gaps) if gaps else None,
        "thrashing_clears": sum(_thrashes(t, n) for t, n in clears),
        "over_half_after_clear": sum(2 * r.evaluated > r.prompt for r in after),
        "requests_after_clear": len(after),
        "clears_of_nothing": sum(t.cleared_nothing for t in throughs),
        "cut_by_window": sum(t.cut_by_window for t in throughs),
        "rereads_of_cleared": sum(t.rereads for t in throughs),
        "summary_requests": sum(r.tag == "summary" for r in requests),
        "stopped_early": sum(t.ended is not None for t in throughs),
    }


def paired(throughs: Sequence[Through], base: Sequence[Through]) -> dict[str, Any]:
    """Ratios to the base policy over the turns of each run that both of them played."""
    mine = {t.run: t for t in throughs}
    pairs = [(mine[b.run], b, min(mine[b.run].turns, b.turns)) for b in base if b.run in mine]
    out: dict[str, Any] = {"paired_runs": len(pairs), "paired_steps": sum(n for _, _, n in pairs)}
    for name in ("recomputed", "evaluated"):
        ours = [_until(a.requests, n, name) for a, _, n in pairs]
        theirs = [_until(b.requests, n, name) for _, b, n in pairs]
        each = [a / b for a, b in zip(ours, theirs, strict=True) if b]
        out[f"{name}_ratio"] = _ratio(sum(ours), sum(theirs))
        out[f"{name}_ratio_median"] = median(each) if each else None
        out[f"{name}_ratio_max"] = max(each, default=None)
    return out


def _until(requests: Iterable[Request], turns: int, name: str) -> int:
    return sum(getattr(r, name) for r in requests if r.turn < turns)


def _steps_until_next(t: Through, number: int) -> int | None:
    """Recorded steps from one clear to the next; None for the last one."""
    return t.clears[number + 1].turn - t.clears[number].turn if number + 1 < len(t.clears) else None


def _thrashes(t: Through, number: int) -> bool:
    """Whether this clear came within two requests of the one before (two clears before one request are one)."""
    between = t.clears[number].before - t.clears[number - 1].before if number else 0
    return 0 < between <= THRASH_REQUESTS


def _ratio(a: float, b: float) -> float | None:
    return a / b if b else None
