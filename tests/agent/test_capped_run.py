"""context.result_cap in a whole run: what the model sees, and that following the hints gives it the rest."""

from __future__ import annotations

import re

from whole_runs import planned, played, told

from harness.paths import shipped

HINT = re.compile(r"\n?\[\d+ characters (?:left out here|follow); (read_more\(.*?\)) shows them\]")


def test_a_model_that_follows_the_hints_gets_the_whole_file(tmp_path):
    whole = (shipped("tasks") / "todo" / "environment" / "repo" / "todo.py").read_text(encoding="utf-8")
    starts = range(750, len(whole), 1000)
    reads = "".join(f"  - calls: [{{read_more: {{result: call_0_0, start: {n}}}}}]\n" for n in starts)
    scenario = f"steps:\n  - calls: [{{read_file: {{path: todo.py}}}}]\n{reads}  - {{say: done}}\n"
    plan = planned(
        tmp_path, "agent=part3", "finish.gate=none", "context.result_cap=1000", scenario=scenario, task="todo"
    )
    _, events = played(plan)
    first, *more = told(events, "tool")
    asked = [m[1] for text in (first, *more) for m in [HINT.search(text)] if m]
    assert asked == [f'read_more(result="call_0_0", start={n})' for n in starts]
    assert whole == first[:750] + "".join(HINT.sub("", text) for text in more)
