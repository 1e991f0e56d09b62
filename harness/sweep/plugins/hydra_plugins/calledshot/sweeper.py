"""hydra/sweeper=resume: Hydra's basic sweeper that leaves out the cells whose result is there."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional  # noqa: UP035  (Hydra reads these annotations at run time)

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser


@dataclass
class ResumeConf:
    _target_: str = "hydra_plugins.calledshot.sweeper.ResumingSweeper"
    max_batch_size: Optional[int] = None  # noqa: UP045
    params: Dict[str, str] = field(default_factory=dict)  # noqa: UP006


ConfigStore.instance().store(group="hydra/sweeper", name="resume", node=ResumeConf, provider="calledshot")


class ResumingSweeper(BasicSweeper):
    """Expands the grid as Hydra does, then launches the unfinished cells only; `harness.sweep.app` shows the progress."""

    def sweep(self, arguments: List[str]) -> Any:  # noqa: UP006
        from harness.sweep.app import still_to_run

        assert self.config is not None
        assert self.hydra_context is not None
        assert self.launcher is not None
        loader = self.hydra_context.config_loader
        params = [f"{k}={v}" for k, v in self.params.items()]
        parsed = OverridesParser.create(config_loader=loader).parse_overrides(params + arguments)
        points = self.split_arguments(parsed, None)[0]
        configs = [loader.load_sweep_config(self.config, list(p)) for p in points]
        todo = [p for p, c in zip(points, configs, strict=True) if still_to_run(c, p)]
        returns = []
        start = 0
        for batch in self.split_overrides_to_chunks(todo, self.max_batch_size) if todo else []:
            returns.append(self.launcher.launch(batch, initial_job_idx=start))
            start += len(batch)
        return returns
