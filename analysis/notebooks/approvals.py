# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Commands: which ran, which asked, which left the repo
#
# A rule reads the text of a command and says whether it runs unasked. Who answers what is asked is a setting; a decision model
# may give an opinion, which decides nothing. Paths outside the copy are found in the command's text, a lower bound.

# %%
from analysis.notebook import records, say, show_table
from analysis.report.html import percent
from analysis.stats import share
from analysis.tables import commands, runs
from analysis.tables.arms import by_arm

found = records()

# %%
for kind, of_kind in found.items():
    columns = [
        "bash_commands",
        "auto_run",
        "prompts",
        "refused",
        "outside_path_commands",
        "outside_path_flagged",
        "guessed_paths",
        "guard_restores",
    ]
    show_table(f"Commands and approvals, sums by arm ({kind} runs)", by_arm(runs(of_kind), columns))

# %%
for kind, of_kind in found.items():
    table = commands(of_kind)
    asked = table["verdict"] == "asks"
    say(f"{kind}: {percent(share(int(asked.sum()), len(table)))} of the commands asked; by rule:")
    for rule, rows in table.groupby("rule_version"):
        say(f"  {rule}: {percent(share(int((rows['verdict'] == 'asks').sum()), len(rows)))}")

# %% [markdown]
# ## Commands that asked, and why

# %%
for kind, of_kind in found.items():
    table = commands(of_kind)
    columns = [
        "arm",
        "seed",
        "step",
        "command",
        "reason",
        "answer",
        "exit_code",
        "outside",
        "advice_choice",
        "advice_probability",
    ]
    chosen = table[table["verdict"] == "asks"]
    show_table(f"Asked ({kind} runs; the first 40 of {len(chosen)})", chosen[columns].head(40))

# %% [markdown]
# ## Commands that named a place outside the copy

# %%
for kind, of_kind in found.items():
    table = commands(of_kind)
    outside = table[table["outside"]]
    ran = int((outside["verdict"] == "runs").sum())
    say(f"{kind}: {len(outside)} of {len(table)} commands named a place outside; {ran} of them ran unasked.")
    show_table(
        f"Outside ({kind} runs; the first 40)",
        outside[["arm", "seed", "step", "command", "verdict", "exit_code", "guess"]].head(40),
    )
