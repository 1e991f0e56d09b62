"""calledshot new experiment: a grid, a plan and predictions to fill in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.run import STUDY
from harness.paths import new_study_root

new_app = typer.Typer(help="Begin something of your own.", no_args_is_help=True)

GRID = """# @package _global_
# calledshot run experiment={name}
defaults:
  - override /task: cart

experiment:
  name: {name}
  seconds_per_run: null   # measured, for the estimate of --dry

server:
  max_tokens: 1024

hydra:
  mode: MULTIRUN
  sweeper:
    params:
      agent: part2,part3
      server.n_ctx: 4096,8192
      seed: range(3)
"""

PLAN = """# {name}

**Question.** What do you want to know, in one sentence?

**Arms.** part2 and part3 at windows of 4096 and 8192 tokens, three seeds each.

**Why.** What makes you expect a difference, and what would change your mind?
"""

PREDICTIONS = """# Write what you expect so that it can turn out wrong, commit, then: calledshot register {name}
experiment: {name}
predictions:
- id: one
  wording: At 4K, part2 declares a task done that is not solved in at least one run.
  cells: {{agent: part2, n_ctx: 4096}}
  claim: any(runs, false_completion)
  probability: 0.6
"""


@new_app.command("experiment")
def experiment_command(
    name: Annotated[str, typer.Argument(help="letters, digits, _ and -")],
    study: STUDY = None,
) -> None:
    """Write conf/experiment/NAME.yaml and experiments/NAME/ with a plan and predictions to fill in."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise ValueError(f"{name}: an experiment's name starts with a letter and has letters, digits, _ and - only")
    root = new_study_root(study)
    files = {
        root / "conf" / "experiment" / f"{name}.yaml": GRID,
        root / "experiments" / name / "plan.md": PLAN,
        root / "experiments" / name / "predictions.yaml": PREDICTIONS,
    }
    if there := [f for f in files if f.exists()]:
        raise ValueError(f"{there[0]}: is there already; take another name")
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(name=name), encoding="utf-8")
        print(shown(file))


def shown(file: Path) -> str:
    """The path as short as it can be said from here."""
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)
