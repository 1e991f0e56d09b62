"""Where the shipped folders conf, tasks and experiments are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent


def shipped(name: str) -> Path:
    """The shipped folder `conf`, `tasks` or `experiments`."""
    beside = PACKAGE.parent / name
    return beside if (PACKAGE.parent / "pyproject.toml").is_file() and beside.is_dir() else PACKAGE / "shipped" / name


def study_root(option: Path | None) -> Path:
    """The study's folder: the one asked for, else the current folder when it has conf/ or experiments/, else the shipped one."""
    if option is not None:
        if not option.is_dir():
            raise ValueError(f"--study {option}: no such folder")
        return option.resolve()
    here = Path.cwd()
    if (here / "conf").is_dir() or (here / "experiments").is_dir():
        return here
    return shipped("experiments").parent


def new_study_root(option: Path | None) -> Path:
    """Where something new is written: the folder asked for, else the current one, which becomes a study by it.

    A checkout's own subfolders are no studies: there it is the checkout. The shipped folders are never written from elsewhere.
    """
    found, here = study_root(option), Path.cwd()
    return found if option is not None or here.is_relative_to(found) else here
