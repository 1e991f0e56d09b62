"""The Hydra application: what happens for one composed configuration, and for a whole request.

`job` is what Hydra's launchers call, also in worker processes; this module registers the resolvers it needs on import. Progress
is shown where the sweep runs in this very process (Hydra's basic launcher); elsewhere it is counted from the result files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from harness.sweep.compose import CONFIG, Cell, Place, cell, cells, hydra_session, is_grid
from harness.sweep.plan import RunPlan, plan
from harness.sweep.progress import Progress
from harness.sweep.run import RunOutcome, execute


@dataclass
class Sweep:
    """What the sweep in this process has done so far."""

    progress: Progress | None = None
    outcomes: list[RunOutcome] = field(default_factory=list)


_current = Sweep()


def _plan_of(config: DictConfig, overrides: Sequence[str] = ()) -> RunPlan:
    place = Place(Path(config.study), Path(config.runs_dir))
    return plan(cell(config, tuple(overrides)), place)


OmegaConf.register_new_resolver(
    "calledshot.run_id", lambda *, _root_: _plan_of(_root_).run_id, use_cache=False, replace=True
)


def job(config: DictConfig) -> dict[str, Any] | None:
    """Hydra's task function: one run. Returns the result row, None when the run failed (its folder says why)."""
    from hydra.core.hydra_config import HydraConfig

    one = _plan_of(config, HydraConfig.get().overrides.task)
    progress = _current.progress
    line = None if progress is None else progress.begin(one.label, one.run_id, one.settings.agent.max_steps)
    outcome = execute(one, line)
    _current.outcomes.append(outcome)
    if progress is not None:
        progress.end(outcome.seconds, in_words(outcome))
    return outcome.result


def in_words(outcome: RunOutcome) -> str:
    """A finished run in a few words."""
    if outcome.result is None:
        return f"FAILED ({outcome.failure})"
    row = outcome.result
    solved = {True: "solved", False: "not solved", None: "not graded"}[row.get("solved")]
    return f"{row['stop_reason']} after {row['steps']} steps, {solved}"


@dataclass(frozen=True)
class Request:
    """A `run` request, planned: all cells in order, and which of them are still to be run."""

    plans: list[RunPlan]
    grid: bool

    @property
    def experiment(self) -> str:
        return self.plans[0].experiment["name"]

    @property
    def todo(self) -> list[RunPlan]:
        return [p for p in self.plans if not p.folder.finished]


def prepare(place: Place, overrides: Sequence[str], multirun: bool) -> Request:
    """Composes and plans every cell, so that each mistake shows before anything is started."""
    asked = [*place.overrides(), *overrides]
    with hydra_session(place) as hydra:
        grid = is_grid(hydra, asked, multirun)
        found: list[Cell] = cells(hydra, asked, multirun)
    return Request([plan(c, place) for c in found], grid)


def run(
    place: Place, overrides: Sequence[str], multirun: bool, announce: Callable[[Request], None]
) -> tuple[Request, list[RunOutcome]]:
    """Runs what is not finished; returns the request and the outcomes of the runs made now.

    Raises:
        SettingsError, TaskError, ModelError, ServingError: a wrong request, before anything is started.
        KeyboardInterrupt: the run at hand is dropped, the finished ones stay.
    """
    request = prepare(place, overrides, multirun)
    announce(request)
    if not request.todo:
        return request, []
    _current.outcomes = []
    done = len(request.plans) - len(request.todo)
    asked = [*place.overrides(), *overrides]
    with Progress(len(request.plans), done) as progress, hydra_session(place) as hydra:
        _current.progress = progress
        try:
            if request.grid:
                hydra.multirun(CONFIG, job, [*asked, "hydra.mode=MULTIRUN"], with_log_configuration=False)
            else:
                hydra.run(CONFIG, job, asked, with_log_configuration=False)
        finally:
            _current.progress = None
    return request, list(_current.outcomes)


def still_to_run(config: DictConfig, overrides: Sequence[str]) -> bool:
    """For the sweeper: True when this cell has no result yet."""
    return not _plan_of(config, overrides).folder.finished
