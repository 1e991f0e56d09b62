"""Run folders -> logs that Inspect's viewer opens: one log per experiment, kind, task and arm; one epoch per run.

`log` and its helpers `messages` and `events` are a pure mapping to plain values in the form of Inspect's own log schema;
`export` checks them against that schema and writes them, and needs inspect-ai (the extra `inspect`), which is imported there
and nowhere else.
"""

from __future__ import annotations

from pathlib import Path

from analysis.export_inspect.log import logs
from analysis.tables.records import all_problems, folder_for, load, need_runs

__all__ = ["ExportError", "export", "logs"]


class ExportError(ValueError):
    """An export that can't be made; one line."""


def export(runs: Path, dest: Path) -> tuple[list[Path], list[str]]:
    """Writes the logs to `dest` and returns (their paths, one line for everything that was left out).

    Raises:
        ExportError: inspect-ai is not installed.
        RecordError: no such folder, no finished run in it, or dest is no folder.
    """
    records = load(runs, short_arms=True)
    need_runs(records, "to export")
    try:
        from inspect_ai.log import EvalLog, write_eval_log
    except ImportError as e:
        raise ExportError("inspect-ai is not installed; the extra has it: pip install 'called-shot[inspect]'") from e
    folder_for(dest)
    written = []
    for name, document in logs(records).items():
        path = dest / name
        write_eval_log(EvalLog.model_validate(document), str(path))
        written.append(path)
    return written, list(all_problems(records))
