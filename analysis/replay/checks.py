"""The two checks of the command as JSON values: predicted reuse in the record, and prompts sent to a server."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from analysis.replay.errors import ReplayError
from analysis.replay.policies import named_policy
from analysis.replay.predict import Prediction, predictions
from analysis.replay.replay import read_run
from analysis.replay.server_check import Checked, check
from analysis.replay.sources import Sources
from analysis.tables.records import Record, load
from harness.record.costs import checkpoints_of
from harness.serving.servers import open_server
from harness.settings import ServerSettings


def predicted(runs: Sequence[Path], sources: Sources) -> dict[str, Any]:
    """{requests, agree, causes, differences}: requests whose server told its reuse; every difference with cause and log line."""
    rows = [p for record in _records(runs) for p in predictions_of(record, sources) if p.reused is not None]
    different = [p for p in rows if not p.agrees]
    return {
        "requests": len(rows),
        "agree": len(rows) - len(different),
        "causes": dict(Counter(p.difference for p in different)),
        "differences": [_difference(p) for p in different],
    }


def predictions_of(record: Record, sources: Sources) -> list[Prediction]:
    """A run's predictions, by its own model's tokens."""
    run, _ = read_run(record, sources)
    server = (record.manifest.get("settings") or {}).get("server") or {}
    return predictions(
        run.material.run,
        record.events,
        run.prompts,
        record.folder.server_log,
        checkpoints=checkpoints_of(record.manifest),
        cache_reuse=server.get("cache_reuse") or 0,
    )


def server_checked(
    runs: Sequence[Path],
    names: Sequence[str],
    sources: Sources,
    *,
    n_ctx: int | None,
    most: int,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Sends every run's prompts under every policy to its own model's server; {requests, agree, differences}.

    Raises:
        ReplayError: a run of no local model.
    """
    rows: list[Checked] = []
    for record in _records(runs):
        run, _ = read_run(record, sources)
        if run.material.kind != "real":
            raise ReplayError(
                f"run {run.material.run} is {run.material.kind}: --server-check needs runs of a local model"
            )
        vocabulary = sources.vocabulary(record.manifest)
        window = n_ctx or run.material.n_ctx
        settings = ServerSettings(kind="embedded", n_ctx=window)
        with (
            tempfile.TemporaryDirectory(prefix="calledshot-check-") as place,
            open_server(settings, vocabulary.model, Path(place), chat_template=vocabulary.given_template) as server,
        ):
            for name in names:
                done = check(run, named_policy(name), server, most=most)
                rows += done
                tell(f"{run.material.run} {name}: {sum(c.agrees for c in done)} of {len(done)} prompts agree")
    different = [c for c in rows if not c.agrees]
    return {
        "requests": len(rows),
        "agree": len(rows) - len(different),
        "differences": [
            {
                "run": c.run,
                "policy": c.policy,
                "number": c.number,
                "prompt": c.prompt,
                "told_prompt": c.told_prompt,
                "predicted": c.predicted,
                "told": c.told,
                "problem": c.problem,
            }
            for c in different
        ],
    }


def _difference(p: Prediction) -> dict[str, Any]:
    return {
        "run": p.run,
        "step": p.step,
        "attempt": p.attempt,
        "tag": p.tag,
        "prompt": p.prompt,
        "predicted": p.predicted,
        "reused": p.reused,
        "cause": p.difference,
        "log": p.log,
    }


def _records(runs: Sequence[Path]) -> list[Record]:
    return [record for root in runs for record in load(root).runs]
