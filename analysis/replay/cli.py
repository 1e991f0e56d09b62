"""`calledshot replay`: recorded runs through context policies at the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from analysis.replay.errors import ReplayError
from harness.agent.context import POLICIES

if TYPE_CHECKING:
    from analysis.replay.outcome import Replay

ROWS = (
    ("recomputed", "recomputed"),
    ("  ratio over common steps", "recomputed_ratio"),
    ("evaluated", "evaluated"),
    ("  ratio over common steps", "evaluated_ratio"),
    ("new", "new"),
    ("amplification", "amplification"),
    ("clears", "clears"),
    ("  freed / recomputed next", "yield"),
    ("  steps between (median)", "steps_between_clears"),
    ("  within two requests", "thrashing_clears"),
    ("  found nothing", "clears_of_nothing"),
    ("overflows", "overflows"),
    ("replies cut by the window", "cut_by_window"),
    ("re-reads of cleared", "rereads_of_cleared"),
    ("steps played", "steps"),
    ("runs ended early", "stopped_early"),
)


def replay_command(
    runs: Annotated[list[str], typer.Argument(help="run folders, or folders of them")],
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", help="one or more policies, e.g. guarded or guarded:floor=0.35,keep=1; first = base"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document on standard output")] = False,
    n_ctx: Annotated[
        int | None, typer.Option("--n-ctx", min=256, help="another window than the recorded one, tokens")
    ] = None,
    cache_reuse: Annotated[
        int, typer.Option("--cache-reuse", min=0, help="as if the server moved cached pieces of so many tokens or more")
    ] = 0,
    predict: Annotated[
        bool, typer.Option("--predict", help="also: predicted reuse beside the server's, for every recorded request")
    ] = False,
    server_check: Annotated[
        bool, typer.Option("--server-check", help="also: send the prompts to the model's own server, one token each")
    ] = False,
    most: Annotated[int, typer.Option("--most", min=1, help="prompts per run and policy in the server check")] = 40,
) -> None:
    """Play recorded runs through context policies, paired, with exact tokens."""
    # pandas and scipy take seconds to load, which the other commands need not wait for.
    from analysis.replay.checks import predicted, server_checked
    from analysis.replay.replay import replay
    from analysis.replay.sources import Sources

    folders, more = _split(runs)
    names = [*(policy or []), *more] or ["published", "guarded"]
    with Sources() as sources:
        found = replay(folders, names, n_ctx=n_ctx, cache_reuse=cache_reuse, sources=sources, progress=_tell)
        document = found.document()
        if predict:
            document["predictions"] = predicted(folders, sources)
        if server_check:
            document["server_check"] = server_checked(folders, names, sources, n_ctx=n_ctx, most=most, tell=_tell)
    if as_json:
        json.dump(document, sys.stdout, ensure_ascii=False, indent=1)
        print()
        return
    _print(found, document)


def _split(given: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Run folders and the names of policies among them: of `--policy A B C` the option itself takes A only."""
    names = [word for word in given if word.partition(":")[0] in POLICIES]
    others = [word for word in given if word not in names]
    wrong = next((w for w in others if len(given) > 1 and "/" not in w and not Path(w).exists()), None)
    if wrong is not None:
        raise ReplayError(
            f"{wrong}: neither a folder of runs nor a policy; name an existing folder, or one of {', '.join(POLICIES)}"
        )
    if not others:
        raise ReplayError(f"no runs are named; name a folder of them (one called {names[0]} is ./{names[0]})")
    return [Path(word) for word in others], names


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def _print(found: Replay, document: dict[str, Any]) -> None:
    console = Console()
    base = document["compared_with"]
    table = Table(
        "",
        *map(escape, found.policies),
        caption=f"{len(found.runs)} runs, tokens; ratios to {base}",
        caption_justify="left",
    )
    for column in table.columns[1:]:
        column.justify, column.overflow = "right", "fold"
    for title, key in ROWS:
        table.add_row(title, *(_cell(document["policies"][name][key]) for name in found.policies))
    console.print(table)
    for key, title in (("predictions", "predicted reuse"), ("server_check", "server check")):
        if key in document:
            _print_check(console, title, document[key])
    for note in document["notes"]:
        console.print(note, markup=False, highlight=False)
    for problem in document["problems"]:
        print(f"left out: {problem}", file=sys.stderr)


def _print_check(console: Console, title: str, found: dict[str, Any]) -> None:
    share = "" if not found["requests"] else f" ({100 * found['agree'] / found['requests']:.1f} %)"
    line = f"{title}: {found['agree']} of {found['requests']} requests agree to the token{share}"
    console.print(line, markup=False, highlight=False)
    for each in _first(found["differences"], 20):
        text = ", ".join(f"{k} {v}" for k, v in each.items() if v is not None)
        console.print(f"  {text}", markup=False, highlight=False)


def _first(rows: Sequence[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    more = len(rows) - most
    return [*rows[:most], {"more": more}] if more > 0 else list(rows)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
