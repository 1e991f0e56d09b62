# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Replies that were cut off
#
# A reply can end because the window is full, because a reply limit is reached, or because the server could not read it. The three
# are told apart. An agent that takes a cut reply for an answer may believe that it is done.

# %%
from analysis.notebook import records, say, show_table
from analysis.tables import requests, runs
from analysis.tables.arms import by_arm, endings

found = records()

# %%
for kind, of_kind in found.items():
    table = runs(of_kind)
    columns = [
        "requests",
        "truncated_answers",
        "cut_by_window",
        "cut_by_limit",
        "cut_unparsed",
        "truncated_as_done",
        "rejected_requests",
    ]
    show_table(f"Cut replies and refused requests, sums by arm ({kind} runs)", by_arm(table, columns))
    show_table(f"How the runs ended ({kind} runs)", endings(table))

# %% [markdown]
# ## Every cut reply
#
# How full the window was when the reply began, and how long the reply was when it was cut.

# %%
for kind, of_kind in found.items():
    asked = requests(of_kind)
    cut = asked[asked["cut"]]
    columns = ["arm", "task", "seed", "step", "cut_kind", "prompt", "generated", "total", "n_ctx", "dropped"]
    show_table(f"Cut replies ({kind} runs; the first 40 of {len(cut)})", cut[columns].head(40))
    full = cut[(cut["cut_kind"] == "window").fillna(False)]
    if len(full):
        share = 100 * (full["generated"] / full["total"]).median()
        say(
            f"{kind}: the {len(full)} replies cut by the window began at prompts of {full['prompt'].min()} to "
            f"{full['prompt'].max()} tokens: the reply, not the prompt, filled {share:.0f} % of the window (median)."
        )

# %% [markdown]
# ## Cut replies taken as done

# %%
for kind, of_kind in found.items():
    table = runs(of_kind)
    taken = table[(table["truncated_as_done"] > 0).fillna(False)]
    false = int(taken["false_completion"].fillna(False).sum())
    say(
        f"{kind}: in {len(taken)} of {len(table)} runs a cut reply was taken as the last word; "
        f"{false} of these declared an unsolved task done."
    )
