"""`calledshot rules`: score rules on commands, print the table for the docs, measure a decision model.

Results go to stdout, progress to stderr. A wrong request is a ValueError of one line, which the command line turns into
exit code 2.
"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.agent.approval.advice import Decider
from harness.agent.approval.labelled import load
from harness.agent.approval.measure import AdviceMeasure, measure_advice
from harness.agent.approval.registry import RULES, rule
from harness.agent.approval.score import Score, markdown, score

rules_app = typer.Typer(no_args_is_help=True, help="Approval rules: score them, compare them, measure advice.")

Commands = Annotated[Path, typer.Option(help="a labelled YAML file, or a folder of runs")]
Root = Annotated[
    Path | None, typer.Option(help="the folder the commands are about (default: the repo the corpus assumes)")
]


@rules_app.command("list")
def list_rules() -> None:
    """Print the known rules with their versions."""
    for name in RULES:
        print(f"{name} {rule(name).version}")


@rules_app.command("score")
def score_command(
    name: Annotated[str, typer.Option("--rule", help="a rule, or all")],
    commands: Commands,
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document on stdout")] = False,
) -> None:
    """Judge commands with a rule: what runs that should ask, what asks needlessly."""
    scores = _scores(RULES if name == "all" else (name,), commands, root)
    if as_json:
        told = {"rules": [s.as_json() for s in scores]} if name == "all" else scores[0].as_json()
        print(_writable(json.dumps(told, ensure_ascii=False, indent=2)))
        return
    if name == "all":
        _print_table(scores)
        return
    _print_one(scores[0])


@rules_app.command("table")
def table_command(commands: Commands, root: Root = None) -> None:
    """Print all rules on one file as a markdown table."""
    print(markdown(_scores(RULES, commands, root)))


@rules_app.command("advice")
def advice_command(
    commands: Commands,
    url: Annotated[str | None, typer.Option(help="the decision model's server (AGENT_DECIDER overrides)")] = None,
    wording: Annotated[str, typer.Option(help="which wording of the question")] = "published",
    folder: Annotated[str, typer.Option(help="the agent's current directory, as told to the model")] = "/repo",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document on stdout")] = False,
) -> None:
    """Ask a decision model about labelled commands and compare its answers with the labels."""
    measured = measure_advice(Decider(url, wording_name=wording), load(commands), folder)
    if as_json:
        print(json.dumps(measured.as_json(), ensure_ascii=False, indent=2))
        return
    _print_advice(measured)


def _scores(names: tuple[str, ...], commands: Path, root: Path | None) -> list[Score]:
    if root is not None and not root.is_dir():
        raise ValueError(f"{root}: no such folder; --root wants the repo the commands are about")
    rules = [rule(name, root=None if root is None else root.resolve()) for name in names]
    return [score(one, load(commands, one.name)) for one in rules]


def _print_table(scores: list[Score]) -> None:
    shown = Table("rule", "version", "should ask but runs", "harmless but asks", "runs", "asks")
    for one in scores:
        counts = one.as_json()
        row = (one.rule, one.version, str(one.missed), str(one.needless), str(counts["runs"]), str(counts["asks"]))
        shown.add_row(*row)
    Console().print(shown)


def _print_one(one: Score) -> None:
    counts = one.as_json()
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{one.rule} {one.version}: {one.total} commands, {counts['runs']} run, {counts['asks']} ask")
    console.print(f"should ask but runs: {one.missed!s}")
    console.print(f"harmless but asks: {one.needless!s}")
    reasons = {j.labelled.command: j.reason for j in one.judged}
    for title, listed in (
        ("runs although it should ask", one.should_ask_but_runs),
        ("asks needlessly", one.safe_but_asks),
    ):
        for command in listed:
            console.print(f"  {title}: {escape(_line(command))}  ({escape(reasons[command])})")
    unlabelled = [j for j in one.judged if j.labelled.should_ask is None]
    for judged in unlabelled:
        word = "runs" if judged.runs else "asks"
        console.print(f"  {word}: {escape(_line(judged.labelled.command))}  ({escape(judged.reason)})")


def _print_advice(measured: AdviceMeasure) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"wording {measured.wording}: {measured.answered} of {measured.asked} questions answered")
    for error in measured.errors:
        console.print(f"  no answer: {escape(error)}")
    console.print(f"ranking (AUC): {_figure(measured.auc)}   calibration (Brier): {_figure(measured.brier)}")
    console.print(f"seconds: median {_figure(measured.median_seconds)}, longest {_figure(measured.longest_seconds)}")
    for effect, flagged in measured.flagged_by_effect.items():
        console.print(f"  flagged, {effect}: {flagged!s}")
    for one in measured.bins:
        console.print(f"  {one.low:.1f} to {one.high:.1f} (mean {one.mean:.2f}): should ask {one.should_ask!s}")


def _line(command: str) -> str:
    return _writable(command.replace("\n", "\\n"))


def _writable(text: str) -> str:
    """Half a character pair, which JSON and YAML can hold, as its escape: that is JSON too."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
