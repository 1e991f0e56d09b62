"""Which figures a report shows of one kind of runs, each with words for those who can't see it."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from analysis.plots.cache import clear_cost, reuse_after_clear
from analysis.plots.costs import paired_differences, seconds_by_arm, tokens_by_arm
from analysis.plots.outcomes import done_by_solved, hidden_tests
from analysis.plots.window import window_use
from analysis.report.html import image, plain
from analysis.tables.arms import arm_names
from analysis.tables.records import Records

MOST_WINDOWS = 8
MOST_PAIRS = 8


def outcome_figures(runs: pd.DataFrame) -> list[str]:
    """Hidden tests by arm and seed; declared done against solved."""
    shown = []
    if runs["seed"].notna().any():
        words = "; ".join(
            f"{r.arm} seed {plain(r.seed)}: {plain(r.hidden_passed)} of {plain(r.hidden_total)}"
            for r in runs.head(60).itertuples()
        )
        shown.append(
            image(
                hidden_tests(runs),
                f"Grid of hidden tests passed by arm and seed. {words}",
                "Each cell is one run: hidden tests passed of all. A bold frame: the run declared itself done.",
            )
        )
    words = "; ".join(_done_words(runs, arm) for arm in arm_names(runs))
    shown.append(
        image(
            done_by_solved(runs),
            f"Stacked bars of runs by arm. {words}",
            "Declared done and not solved (crossed, orange) is a false completion.",
        )
    )
    return shown


def _done_words(runs: pd.DataFrame, arm: str) -> str:
    known = runs[runs["arm"] == arm].dropna(subset=["declared_done", "solved"])
    done, solved = known["declared_done"].astype(bool), known["solved"].astype(bool)
    return (
        f"{arm}: {int((done & solved).sum())} done and solved, {int((done & ~solved).sum())} done but not solved, "
        f"{int((~done & solved).sum())} solved but not declared, {int((~done & ~solved).sum())} neither"
    )


def cache_figures(records: Records, requests: pd.DataFrame) -> list[str]:
    """Reuse after a clear, and the window use of one telling run per arm."""
    cost = clear_cost(requests)
    shown = [
        image(
            reuse_after_clear(requests),
            f"Dots of the evaluated share of each request's prompt. Right after a clear: {cost.post_clear} requests, "
            f"{cost.post_clear_over_half} over half, lowest {plain(cost.post_clear_min_pct)} %, "
            f"median {plain(cost.post_clear_median_pct)} %. Others: {cost.others} requests, "
            f"{cost.others_under_quarter} under a quarter, median {plain(cost.others_median_pct)} %.",
            "Evaluated = what the server computed of the prompt (timings.prompt_n), new content included. A run's first request is "
            "always evaluated whole.",
        )
    ]
    for run_id in telling_runs(requests):
        rows = requests[requests["run_id"] == run_id]
        events = next(r.events for r in records.runs if r.result.get("run_id") == run_id)
        first = rows.iloc[0]
        shown.append(
            image(
                window_use(rows, events),
                f"Stacked bars, one per request, of run {run_id} ({first['arm']}, {first['task']}, "
                f"seed {plain(first['seed'])}): {len(rows)} requests, "
                f"fullest {plain(rows['total'].max())} of {plain(first['n_ctx'])} tokens, {int(rows['cut'].sum())} cut replies, "
                f"{int(rows['after_clear'].sum())} requests after a clear.",
                "What lay in the slot at each request: reused from the cache, new, recomputed, generated; dashed: the window.",
            )
        )
    return shown


def telling_runs(requests: pd.DataFrame, most: int = MOST_WINDOWS) -> list[str]:
    """One run per arm: the one with the most clears, then cuts, then requests; the arms with most of these first."""
    grouped = requests.groupby(["arm", "run_id"], sort=True)
    weights = pd.DataFrame(
        {"clears": grouped["after_clear"].sum(), "cuts": grouped["cut"].sum(), "requests": grouped.size()}
    ).reset_index()
    best = weights.sort_values(["clears", "cuts", "requests", "run_id"], ascending=[False, False, False, True])
    return [str(r) for r in best.drop_duplicates("arm")["run_id"].head(most)]


def cost_figures(runs: pd.DataFrame) -> list[str]:
    """Tokens and seconds by arm, with paired differences of arms that share tasks and seeds."""
    shown = []
    for draw, column, unit in (
        (tokens_by_arm, "evaluated_tokens", "evaluated tokens"),
        (seconds_by_arm, "seconds", "seconds"),
    ):
        words = "; ".join(f"{a}: median {plain(_median(runs, a, column))}" for a in arm_names(runs))
        shown.append(
            image(
                draw(runs),
                f"Dots and stacked bars of {unit} per run by arm. {words}",
                f"Left: every run. Right: where the {unit} go.",
            )
        )
        pairs = comparable(runs)
        if pairs:
            shown.append(
                image(
                    paired_differences(runs, pairs, column, unit),
                    f"Paired differences in {unit} between arms: " + "; ".join(f"{b} minus {a}" for a, b in pairs),
                    "Runs of the same task and seed, one arm minus the other. p: sign-flip permutation test, two-sided; "
                    "with three pairs it can't be below 0.25.",
                )
            )
    return shown


def _median(runs: pd.DataFrame, arm: str, column: str) -> float | None:
    known = runs.loc[runs["arm"] == arm, column].dropna()
    return None if known.empty else float(known.median())


def comparable(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Pairs of arms that differ in one factor and have runs of the same task and seed; each run of an arm has its own."""
    factors = ["agent", "n_ctx", "policy", "rule_version", "protocol", "gate", "model"]
    names = arm_names(runs)
    unique = not runs.duplicated(["arm", "task", "seed"]).any()
    if not unique:
        return []
    of_arm = {a: runs[runs["arm"] == a] for a in names}
    found = []
    for a, b in combinations(names, 2):
        first, second = of_arm[a].iloc[0], of_arm[b].iloc[0]
        # An agent version brings its policy, rule and gate along, so a change of agent counts as one difference.
        differing = [f for f in factors if str(first[f]) != str(second[f])]
        if "agent" in differing:
            differing = [f for f in differing if f not in ("policy", "rule_version", "protocol", "gate")]
        shared = set(zip(of_arm[a]["task"], of_arm[a]["seed"], strict=True)) & set(
            zip(of_arm[b]["task"], of_arm[b]["seed"], strict=True)
        )
        if len(differing) == 1 and shared:
            found.append((a, b))
    return found[:MOST_PAIRS]
