# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Called shots
#
# A prediction counts when it was committed before the first run; the column beside the verdict says whether it was. Held in
# wording only: true as written, but its stated meaning failed, or nothing could have refuted it. Undetermined: the runs do not
# hold what the claim needs.

# %%
from collections import Counter

from analysis.notebook import say, show, verdicts
from analysis.plots.scoreboard import scoreboard
from analysis.report.verdicts import because

called = verdicts()

# %%
show(scoreboard(called), "Scoreboard: " + ("; ".join(f"{v['id']}: {v['verdict']}" for v in called) or "no predictions"))
for verdict, count in Counter(str(v["verdict"]) for v in called).most_common():
    say(f"{verdict.replace('_', ' ')}: {count} of {len(called)}")

# %% [markdown]
# ## Why

# %%
for v in called:
    say(f"{v['id']}: {v['verdict'].replace('_', ' ')} ({v.get('provenance')}). {because(v)}")
