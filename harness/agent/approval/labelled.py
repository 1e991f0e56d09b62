"""Commands to score a rule with: from a labelled file, a file of expected verdicts, or recorded runs.

Three shapes are read. A list of rows with `command` and `should_ask` (and `effect`, `why`: data/corpus.yaml). A mapping
whose `commands` give `verdicts` by rule: the label is what that rule must say, so it holds for the rules named only. A
folder of runs: every command their events.jsonl recorded as judged, without labels. Only run folders are read, not what an
agent may have written into the copy of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.record.events import read_events
from harness.record.folder import EVENTS, find_runs


class LabelledError(ValueError):
    """A file of commands that cannot be used; one line naming the file and the mend."""


@dataclass(frozen=True)
class Labelled:
    """One command. `should_ask` is None where nothing says; `effect` is that of its worst part."""

    command: str
    should_ask: bool | None
    effect: str | None = None


def load(path: Path, rule_name: str | None = None) -> list[Labelled]:
    """Read `path`; `rule_name` chooses the labels of a file of expected verdicts."""
    if path.is_dir():
        return _recorded(path)
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabelledError(f"{path}: no such file; name a YAML file of commands or a folder of runs") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabelledError(f"{path}: cannot be read ({error})") from None
    except RecursionError:
        raise LabelledError(f"{path}: nested too deep; expected a list of rows with command and should_ask") from None
    except yaml.YAMLError as error:
        raise LabelledError(f"{path}: not YAML ({' '.join(str(error).split())[:150]})") from None
    rows = told.get("commands") if isinstance(told, dict) else told
    if not isinstance(rows, list) or not rows:
        raise LabelledError(f"{path}: no commands; expected a list of rows with command and should_ask")
    return [_row(path, number, row, rule_name) for number, row in enumerate(rows, start=1)]


def _row(path: Path, number: int, row: Any, rule_name: str | None) -> Labelled:
    if not isinstance(row, Mapping) or not isinstance(row.get("command"), str):
        raise LabelledError(f"{path}: row {number} has no text under 'command' (quote it: true and 1 are not text)")
    should_ask = row.get("should_ask")
    if should_ask is None and isinstance(row.get("verdicts"), Mapping):
        verdict = row["verdicts"].get(rule_name)
        if verdict not in (None, "asks", "runs"):
            raise LabelledError(f"{path}: row {number} has the verdict {verdict!r}; use asks or runs")
        should_ask = None if verdict is None else verdict == "asks"
    elif not isinstance(should_ask, bool):
        raise LabelledError(f"{path}: row {number} needs should_ask: true or false (or verdicts by rule)")
    effect = row.get("effect")
    if effect is not None and not isinstance(effect, str):
        raise LabelledError(f"{path}: row {number} has an effect that is not text")
    return Labelled(row["command"], should_ask, effect)


def _recorded(folder: Path) -> list[Labelled]:
    files = [place for run in find_runs(folder) if (place := run.path / EVENTS).is_file()]
    if not files:
        raise LabelledError(f"{folder}: no runs below it; name a folder of runs or a YAML file of commands")
    return [
        Labelled(event["command"], None)
        for file in files
        for event in read_events(file)
        if event.get("event") == "approval" and isinstance(event.get("command"), str)
    ]
