# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # What the hidden tests say
#
# Declared done is what the agent says. Solved is what the hidden tests say: all of them pass on the final tree, on which the
# agent's own changes to tests and test settings are left out.

# %%
from analysis.notebook import records, say, show, show_table
from analysis.plots.outcomes import done_by_solved, hidden_tests
from analysis.report.figures import comparable
from analysis.report.html import percent
from analysis.stats import paired_shares
from analysis.tables import runs, tests
from analysis.tables.arms import by_arm, summaries

found = records()

# %%
for kind, of_kind in found.items():
    table = runs(of_kind)
    show(hidden_tests(table), f"Hidden tests passed by arm and seed ({kind} runs).")
    show(done_by_solved(table), f"Declared done against solved by arm ({kind} runs).")
    for arm in summaries(table):
        say(f"{kind}, {arm.arm}: solved {percent(arm.solved)}; false completions {percent(arm.false_completion)}.")

# %% [markdown]
# ## Done, and yet
#
# An empty last reply, no test run after the last change, a last test run that failed, a cut reply taken as done, an unchanged repo,
# and an end that is worse than the start.

# %%
for kind, of_kind in found.items():
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
        "tampered_tests",
    ]
    show_table(f"Completions, counts by arm ({kind} runs)", by_arm(runs(of_kind), columns))

# %% [markdown]
# ## Arms against each other, paired by task and seed

# %%
for kind, of_kind in found.items():
    table = runs(of_kind)
    for a, b in comparable(table):
        pair = paired_shares(table, "solved", a, b)
        say(
            f"{kind}: {a} against {b}, {pair.n} pairs: both solved {pair.both}, only {a} {pair.only_a}, only {b} {pair.only_b}, "
            f"neither {pair.neither}" + ("" if pair.p is None else f"; McNemar's exact p = {pair.p:.2g}") + "."
        )

# %% [markdown]
# ## Which hidden tests fail

# %%
for kind, of_kind in found.items():
    table = tests(of_kind)
    hidden = table[table["set"] == "hidden"]
    counts = hidden.groupby(["task", "test"], as_index=False).agg(runs=("passed", "size"), passed=("passed", "sum"))
    show_table(f"Hidden tests, runs in which each passed ({kind} runs)", counts)
