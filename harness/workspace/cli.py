"""`calledshot tasks`: list, check, new, import."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.settings import SandboxSettings
from harness.workspace.check import Proof, prove
from harness.workspace.errors import TaskError
from harness.workspace.importing import FORMATS, Choice, import_tasks
from harness.workspace.task_format import scaffold, write_task
from harness.workspace.tasks import list_tasks, load_task

tasks_app = typer.Typer(help="The repos that agents work on: list, prove, begin and import them.", no_args_is_help=True)
stdout, stderr = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)

Study = Annotated[Path, typer.Option("--study", help="A folder whose tasks/ comes before the shipped tasks.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Into = Annotated[Path, typer.Option(help="The folder that gets the task folders.")]


@tasks_app.command("list")
def list_command(study: Study = Path(), as_json: AsJson = False) -> None:
    """All tasks with what they hold."""
    tasks = [load_task(path) for path in list_tasks(study.resolve()).values()]
    rows = [
        {
            "name": t.name,
            "visible_tests": len(t.visible_names),
            "hidden_tests": len(t.hidden_names),
            "asks_for_tests": t.asks_for_tests,
            "digest": t.digest,
            "path": str(t.path),
        }
        for t in sorted(tasks, key=lambda t: t.name)
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table("task", "visible", "hidden", "asks for tests", "digest")
    table.add_column("folder", overflow="fold")
    for r in rows:
        wish = "yes" if r["asks_for_tests"] else "no"
        numbers = str(r["visible_tests"]), str(r["hidden_tests"])
        table.add_row(Text(r["name"]), *numbers, wish, r["digest"][:12], Text(r["path"]))
    stdout.print(table)


@tasks_app.command("check")
def check_command(
    names: Annotated[list[str] | None, typer.Argument(help="Names or folders; all tasks by default.")] = None,
    times: Annotated[int, typer.Option(min=1, help="How often each tree is graded.")] = 3,
    sandbox: Annotated[
        Literal["bubblewrap", "none"], typer.Option(help="Where the tests run; none = with your rights.")
    ] = "bubblewrap",
    study: Study = Path(),
    as_json: AsJson = False,
) -> None:
    """Proves that the reference passes all hidden tests and the untouched repo does not; exit 1 when that does not hold."""
    chosen = names or sorted(list_tasks(study.resolve()))
    if not chosen:
        raise TaskError("no tasks to check; calledshot tasks new NAME begins one")
    proofs: list[Proof] = []
    for name in chosen:
        task = load_task(name, study=study.resolve())
        stderr.print(f"checking {task.name}", style="dim")
        proofs.append(prove(task, SandboxSettings(kind=sandbox), times))
        if not as_json:
            stdout.print(_line(proofs[-1], times), markup=False, highlight=False)
    if as_json:
        print(json.dumps([asdict(p) | {"holds": p.holds} for p in proofs], indent=1))
    if not all(p.holds for p in proofs):
        raise typer.Exit(1)


@tasks_app.command("new")
def new_command(name: str, into: Into = Path("tasks")) -> None:
    """Begins a task: a small whole one to be changed into yours."""
    stdout.print(str(write_task(scaffold(name), into)), markup=False, highlight=False)


@tasks_app.command("import")
def import_command(
    source: Annotated[Path, typer.Argument(help="A folder or file of yours.")],
    layout: Annotated[Literal[FORMATS], typer.Option("--format", help="What the source is; auto looks.")] = "auto",
    only: Annotated[list[str] | None, typer.Option(help="Import these only (again for more).")] = None,
    hide_tests: Annotated[
        bool, typer.Option("--hide-tests", help="Keep the tests out of the repo that the agent sees.")
    ] = False,
    into: Into = Path("tasks"),
) -> None:
    """Turns tasks of other collections into task folders."""
    done = import_tasks(source, into, layout, Choice(tuple(only or ()), hide_tests))
    for folder in done.written:
        stdout.print(str(folder), markup=False, highlight=False)
    for warning in done.skipped:
        stderr.print(warning, markup=False, highlight=False)
    stderr.print(
        f"{len(done.written)} imported, {len(done.skipped)} left out; prove them with calledshot tasks check",
        style="dim",
    )


def _line(proof: Proof, times: int) -> str:
    if proof.holds:
        return (
            f"{proof.task}: holds; reference {proof.reference_passed} of {proof.hidden_total} hidden tests, untouched repo "
            f"{proof.untouched_passed}, visible {proof.untouched_visible} of {proof.visible_total}, {times} times each"
        )
    return "\n".join(f"{proof.task}: {problem}" for problem in proof.problems)
