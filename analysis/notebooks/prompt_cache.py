# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # What clearing costs the prompt cache
#
# A server keeps what it computed for the last prompt. The next prompt reuses it as far as both begin alike; everything after
# the first difference is evaluated again. An agent that only appends pays for new text alone. An agent that clears old
# content changes the middle of its prompt, so what stands behind the change is computed a second time.
#
# Per request: prompt = reused + evaluated, evaluated = new + recomputed. Numbers come from the replies; the server's own log is
# the cross-check.

# %%
from analysis.notebook import records, say, show, show_table
from analysis.plots.cache import clear_cost, reuse_after_clear
from analysis.plots.window import window_use
from analysis.report.figures import telling_runs
from analysis.report.html import plain
from analysis.tables import clears, cross_check, line, requests, runs
from analysis.tables.arms import by_arm

found = records()

# %%
for kind, of_kind in found.items():
    say(f"{kind}: {len(of_kind.runs)} runs; {line(cross_check(of_kind))}")

# %% [markdown]
# ## Requests right after a clear against the others

# %%
for kind, of_kind in found.items():
    asked = requests(of_kind)
    cost = clear_cost(asked)
    show(
        reuse_after_clear(asked),
        f"Evaluated share of the prompt of every request ({kind} runs), right after a clear and otherwise.",
    )
    after = "no request followed a clear"
    if cost.post_clear:
        after = (
            f"right after a clear {cost.post_clear} requests, {cost.post_clear_over_half} evaluated more than half "
            f"of their prompt (lowest {plain(cost.post_clear_min_pct)} %, median {plain(cost.post_clear_median_pct)} %)"
        )
    say(f"{kind}: {after}; of {cost.others} others {cost.others_under_quarter} stayed under a quarter.")

# %% [markdown]
# ## Sums by arm
#
# Amplification is evaluated / new: 1 means that nothing was computed twice.

# %%
for kind, of_kind in found.items():
    table = runs(of_kind)
    columns = ["prompt_tokens", "reused_tokens", "evaluated_tokens", "new_tokens", "recomputed_tokens"]
    show_table(f"Prompt tokens, sums by arm ({kind} runs)", by_arm(table, columns))
    show_table(f"Amplification, median over runs ({kind} runs)", by_arm(table, ["amplification"], "median"))

# %% [markdown]
# ## Every clear
#
# A clear whose yield (freed / recomputed) is below 1 cost more than it freed; one that is followed by another within two requests
# thrashes.

# %%
for kind, of_kind in found.items():
    table = clears(of_kind)
    columns = [
        "arm",
        "task",
        "seed",
        "step",
        "when",
        "cleared",
        "freed",
        "recomputed",
        "evaluated_pct",
        "yield",
        "steps_to_next",
        "thrash",
    ]
    show_table(f"Clears ({kind} runs; the first 40 of {len(table)})", table[columns].head(40))

# %% [markdown]
# ## The window over the steps of a run
#
# One run per arm: the one with the most clears and cuts.

# %%
for kind, of_kind in found.items():
    asked = requests(of_kind)
    for run_id in telling_runs(asked):
        events = next(r.events for r in of_kind.runs if r.result["run_id"] == run_id)
        show(
            window_use(asked[asked["run_id"] == run_id], events), f"Window use over the steps of run {run_id} ({kind})."
        )
