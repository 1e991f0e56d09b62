"""Hydra at the edge: composes configurations, expands grids, and turns both into validated settings.

The shipped conf/ is the primary source; a study's own conf/ is put on Hydra's search path. Every mistake in a request (an
unknown key, a wrong value, a missing group) becomes one SettingsError line. Uses Hydra's internal entrance, hence the pin on
hydra-core 1.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import version
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.paths import shipped
from harness.settings import RunSettings, SettingsError, from_config

CONFIG = "config"
# Keys of the composed config that are not settings of a run.
NOT_SETTINGS = ("hydra", "experiment", "runs_dir", "study")


@dataclass(frozen=True)
class Place:
    """Where a request is made: the study's folder and the folder for runs, both absolute."""

    study: Path
    runs: Path

    def overrides(self) -> list[str]:
        return [f"study={quoted(str(self.study))}", f"runs_dir={quoted(str(self.runs))}"]


@dataclass(frozen=True)
class Cell:
    """One point of a grid: its overrides as given, its settings, and its experiment's facts (name, seconds_per_run, …)."""

    overrides: tuple[str, ...]
    settings: RunSettings
    experiment: dict[str, Any]


def quoted(text: str) -> str:
    """A text as one Hydra override value."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _search_path(study: Path) -> ConfigSearchPath:
    path = create_config_search_path(str(shipped("conf")))
    own = study / "conf"
    if own.is_dir() and own.resolve() != shipped("conf").resolve():
        path.prepend("study", f"file://{own}", anchor="schema")
    return path


@contextmanager
def hydra_session(place: Place) -> Iterator[Hydra]:
    """Hydra, set up for this place; HydraException and OmegaConf errors inside become SettingsError."""
    version.setbase("1.3")
    GlobalHydra.instance().clear()
    register_sweeper()
    try:
        yield Hydra.create_main_hydra2("calledshot", _search_path(place.study))
    except (HydraException, OmegaConfBaseException) as e:
        raise SettingsError(one_line(e)) from e
    finally:
        GlobalHydra.instance().clear()


def register_sweeper() -> None:
    """Makes the resuming sweeper known, also where an editable install hides it from Hydra's own search."""
    import hydra_plugins.calledshot.sweeper as plugin
    from hydra.core.plugins import Plugins

    if plugin.ResumingSweeper not in Plugins.instance().discover(BasicSweeper):
        Plugins.instance().register(plugin.ResumingSweeper)


def one_line(error: Exception) -> str:
    """Hydra's words about a wrong request in one line, with what is known where it says so."""
    text = f"{error} {error.__cause__ or ''}"
    missing = re.search(r"Could not find '([^']+)'", text)
    if missing:
        known = re.search(r"Available options in '[^']+':\n((?:\t.+\n?)+)", text)
        choices = f"; known: {', '.join(known[1].split())}" if known else ""
        return f"{missing[1].replace('/', '=', 1)}: there is no such choice{choices}"
    group = re.search(r"Could not override '([^']+)'\.?\s*(No match in the defaults list)?", text)
    absent = re.search(r"Key '[^']+' is not in struct\s+full_key: (\S+)", text)
    if absent or (group and "@" not in group[1]):
        key = absent[1] if absent else group[1] if group else ""
        return f"{key}: no such key; look into conf/ for the ones that exist"
    needed = re.search(r"Missing mandatory value: (\S+)", text)
    if needed:
        return f"{needed[1]}: needs a value"
    if "override_grammar" in text:
        words = " ".join(re.split(r"\s+See https", text)[0].split())
        return f"an override must look like key=value: {words}"
    return " ".join(re.sub(r"full_key: |object_type=\S+|Set the environment variable.*", "", text).split())


def is_grid(hydra: Hydra, overrides: Sequence[str], multirun: bool) -> bool:
    """True when the request is a sweep: asked for, or because an experiment is one, or because an override has several values."""
    if multirun:
        return True
    loader = hydra.config_loader
    parsed = OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))
    if any(o.is_sweep_override() for o in parsed):
        return True
    config = loader.load_configuration(CONFIG, list(overrides), RunMode.RUN)
    return config.hydra.mode == RunMode.MULTIRUN


def cells(hydra: Hydra, overrides: Sequence[str], multirun: bool) -> list[Cell]:
    """The cells of a request, in the order in which they would run; one cell for a single run."""
    loader = hydra.config_loader
    if not is_grid(hydra, overrides, multirun):
        return [cell(loader.load_configuration(CONFIG, list(overrides), RunMode.RUN), tuple(overrides))]
    root = loader.load_configuration(CONFIG, list(overrides), RunMode.MULTIRUN)
    sweeper = root.hydra.sweeper
    found = points(loader, sweeper.params or {}, sweeper.get("grids") or [], overrides)
    return [cell(loader.load_sweep_config(root, p), tuple(p)) for p in found]


def points(
    loader: Any, params: Mapping[str, Any], grids: Sequence[Mapping[str, Any]], arguments: Sequence[str]
) -> list[list[str]]:
    """The overrides of every cell: one product per grid, `params` underneath, `arguments` on top; each cell once."""
    parser = OverridesParser.create(config_loader=loader)
    found: dict[tuple[str, ...], list[str]] = {}
    for grid in grids or [{}]:
        under = [f"{k}={v}" for k, v in (dict(params) | dict(grid)).items()]
        for point in BasicSweeper.split_arguments(parser.parse_overrides(under + list(arguments)), None)[0]:
            found.setdefault(tuple(sorted(point)), list(point))
    return list(found.values())


def cell(config: DictConfig, overrides: tuple[str, ...]) -> Cell:
    """A composed configuration as a cell; raises SettingsError for what does not hold."""
    settings, experiment = split(config)
    return Cell(tuple(o for o in overrides if not o.startswith(("study=", "runs_dir="))), settings, experiment)


def split(config: DictConfig) -> tuple[RunSettings, dict[str, Any]]:
    """(settings, the experiment's facts) of a composed configuration."""
    missing = OmegaConf.missing_keys(OmegaConf.masked_copy(config, [k for k in config if k != "hydra"]))
    if missing:
        raise SettingsError(f"{sorted(missing)[0]}: needs a value")
    plain = OmegaConf.to_container(
        OmegaConf.masked_copy(config, [k for k in config if k not in NOT_SETTINGS]), resolve=True
    )
    experiment = OmegaConf.to_container(config.experiment, resolve=True)
    return from_config(plain), experiment
