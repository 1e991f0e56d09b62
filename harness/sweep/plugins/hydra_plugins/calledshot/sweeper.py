"""hydra/sweeper=resume: Hydra's basic sweeper that leaves out the cells whose result is there.

`params` is Hydra's own: one grid, the product of its values. `grids` is a list of further such mappings: the sweep is then the
union of one product per entry, each with `params` underneath; what the command line says wins over both.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional  # noqa: UP035  (Hydra reads these annotations at run time)

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore


@dataclass
class ResumeConf:
    _target_: str = "hydra_plugins.calledshot.sweeper.ResumingSweeper"
    max_batch_size: Optional[int] = None  # noqa: UP045
    params: Dict[str, str] = field(default_factory=dict)  # noqa: UP006
    grids: List[Dict[str, Any]] = field(default_factory=list)  # noqa: UP006


ConfigStore.instance().store(group="hydra/sweeper", name="resume", node=ResumeConf, provider="calledshot")


class ResumingSweeper(BasicSweeper):
    """Expands the grids, then launches the unfinished cells only; `harness.sweep.app` shows the progress."""

    def __init__(
        self,
        max_batch_size: Optional[int],  # noqa: UP045
        params: Optional[Dict[str, str]] = None,  # noqa: UP006, UP045
        grids: Optional[List[Dict[str, Any]]] = None,  # noqa: UP006, UP045
    ) -> None:
        super().__init__(max_batch_size, params)
        self.grids = grids or []

    def sweep(self, arguments: List[str]) -> Any:  # noqa: UP006
        from harness.sweep.app import still_to_run
        from harness.sweep.compose import points

        assert self.config is not None
        assert self.hydra_context is not None
        assert self.launcher is not None
        loader = self.hydra_context.config_loader
        found = points(loader, self.params, self.grids, arguments)
        configs = [loader.load_sweep_config(self.config, p) for p in found]
        todo = [p for p, c in zip(found, configs, strict=True) if still_to_run(c, p)]
        returns = []
        start = 0
        for batch in self.split_overrides_to_chunks(todo, self.max_batch_size) if todo else []:
            returns.append(self.launcher.launch(batch, initial_job_idx=start))
            start += len(batch)
        return returns
