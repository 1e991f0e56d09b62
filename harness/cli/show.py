"""calledshot show and status: one run's transcript, and where an experiment stands."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness.cli.console import results
from harness.cli.run import RUNS, STUDY, place
from harness.record.events import read_events
from harness.record.folder import MANIFEST, RecordError, RunFolder, find_runs, read_json
from harness.sweep.app import prepare
from harness.sweep.run import FAILED

MOST_CHARS = 2000


def find_run(name: str, runs: Path) -> RunFolder:
    """A run by its folder, its id, or the beginning of its id; raises RecordError when none or several fit."""
    if (Path(name) / MANIFEST).is_file():
        return RunFolder(Path(name))
    found = [r for r in (find_runs(runs) if runs.exists() else []) if r.path.name.startswith(name)]
    if len(found) != 1:
        what = "no run" if not found else f"{len(found)} runs"
        raise RecordError(f"{name}: {what} of that name in {runs}; give a run folder or its id")
    return found[0]


def show_command(
    run: Annotated[str, typer.Argument(help="a run folder, or a run id (its first digits will do)")],
    full: Annotated[bool, typer.Option("--full", help="do not shorten long texts")] = False,
    runs: RUNS = None,
    study: STUDY = None,
) -> None:
    """Print a run's transcript; cut replies, clears and guard marks stand out."""
    folder = find_run(run, place(study, runs).runs)
    console = results(highlight=False)
    facts = folder.manifest()
    settings = facts["settings"]
    title = f"{facts['run_id']}  {settings['agent']['name']}  {facts['task']['name']}  seed {settings['seed']}"
    console.print(f"[bold]{escape(title)}[/bold]  window {facts['server']['n_ctx']}  ({facts['kind']})")
    for event in read_events(folder.events):
        for style, text in lines(event):
            console.print(escape(text if full or len(text) <= MOST_CHARS else shortened(text)), style=style)
    if folder.finished:
        row = folder.result()
        console.print(
            f"[bold]hidden tests {row['hidden_passed']}/{row['hidden_total']}[/bold], solved: {row['solved']}"
        )
    else:
        console.print("[bold]not finished[/bold]: this run is started afresh next time")


def shortened(text: str) -> str:
    half = MOST_CHARS // 2
    return f"{text[:half]}\n… {len(text) - MOST_CHARS} characters not shown (--full) …\n{text[-half:]}"


def lines(event: dict[str, Any]) -> list[tuple[str, str]]:
    """(rich style, text) for each line of the transcript that an event gives."""
    match event["event"]:
        case "message":
            return _message(event["message"])
        case "response":
            return _response(event)
        case "context" if event["cleared"] == 0:
            return [("dim", f"~~ clear ({event['when']}) that found nothing to clear; {event['reason']}")]
        case "context":
            return [("black on yellow", f"~~ clear ({event['when']}): {event['cleared']} messages; {event['reason']}")]
        case "guard":
            return [("black on yellow", f"!! guard: {event['note']}")]
        case "approval" if event["verdict"] == "asks":
            advice = f"; {event['advice']['line']}" if event["advice"] else ""
            return [("yellow", f"?? asked ({event['reason']}){advice}: answered {event['answer']}")]
        case "finish_check":
            return [
                (
                    "yellow",
                    f"?? done? {event['gate']}: {'passed' if event['passed'] else 'failed'} {event['last_line']}",
                )
            ]
        case "stop":
            return [("bold", f"== {event['reason']} after {event['steps']} steps: {event['text']}")]
    return []


def _message(message: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    if message.get("reasoning_content"):
        found.append(("dim", f"(thinks) {message['reasoning_content']}"))
    if message.get("content"):
        style = {"system": "dim", "user": "cyan", "tool": "green"}.get(message["role"], "")
        found.append((style, f"{message['role']}: {message['content']}"))
    for call in message.get("tool_calls") or ():
        found.append(("magenta", f"call: {call['function']['name']} {call['function']['arguments']}"))
    return found


def _response(event: dict[str, Any]) -> list[tuple[str, str]]:
    timings, usage = event["timings"] or {}, event["usage"] or {}
    size = (
        f"prompt {usage.get('prompt_tokens')} (reused {timings.get('cache_n')}), wrote {usage.get('completion_tokens')}"
    )
    if event["outcome"] == "reply":
        return [("dim", f"-- step {event['step']}: {size}")]
    if event["outcome"] == "cut":
        word = "dropped" if event["dropped"] else "taken as it came"
        found = [("black on red", f"## step {event['step']}: reply cut ({event['kind']}), {word}; {size}")]
        message = event["message"] or {}
        if event["dropped"] and message.get("content"):
            found.append(("red", message["content"]))
        return found
    return [("black on red", f"## step {event['step']}: {event['outcome']} {event['status']}: {event['error']}")]


def status_command(
    experiment: Annotated[str, typer.Argument(help="an experiment's name")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
    study: STUDY = None,
    runs: RUNS = None,
) -> None:
    """Say which runs of an experiment are finished, half done, failed (by cause) or missing."""
    where = place(study, runs)
    request = prepare(where, [f"experiment={experiment}"], multirun=False)
    rows = [(p, *state(p.folder)) for p in request.plans]
    if as_json:
        cells = [{"run_id": p.run_id, "cell": p.label, "state": s, "cause": c} for p, s, c in rows]
        print(json.dumps({"experiment": experiment, "runs": cells}, indent=1))
        return
    table = Table("run", "state", "cause", "cell", title=experiment)
    for one, word, cause in rows:
        table.add_row(one.run_id, word, Text(cause or ""), Text(one.label))
    results().print(table)
    counts = Counter(word for _, word, _ in rows)
    print(", ".join(f"{n} {word}" for word, n in counts.items()))
    strangers = {r.path.name for r in _runs_of(where.runs / experiment)} - {p.run_id for p, _, _ in rows}
    if strangers:
        print(
            f"{len(strangers)} finished runs in the folder belong to no cell of the grid as it is now", file=sys.stderr
        )


def _runs_of(folder: Path) -> list[RunFolder]:
    return [r for r in find_runs(folder) if r.finished] if folder.exists() else []


def state(folder: RunFolder) -> tuple[str, str | None]:
    """(finished, failed, half or missing; the cause of a failure)."""
    if folder.finished:
        return "finished", None
    failed = folder.path / FAILED
    if failed.is_file():
        return "failed", read_json(failed)["error"]
    return ("half", None) if folder.events.exists() else ("missing", None)
