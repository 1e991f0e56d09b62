"""`replay(runs, policies)`: every recorded run through every policy, paired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.replay.births import Birth, births
from analysis.replay.errors import ReplayError
from analysis.replay.lab import OnRequest, Through, born, play
from analysis.replay.material import Material, material
from analysis.replay.outcome import Replay
from analysis.replay.policies import NamedPolicy, named_policy
from analysis.replay.prompts import PromptError, Prompts
from analysis.replay.sources import Sources
from analysis.tables.records import Record, Records, load
from harness.record.slot import reached_slot, slot_requests, token_counts
from harness.serving.errors import ServingError

Progress = Callable[[str], None]
STAND_IN = (
    "summarise: a stand-in of summary_tokens tokens takes the place of the summary; its request and reply are counted."
)
SUPPOSED = "kv_shift and --cache-reuse: as if the server moved every cached piece that can be moved."


@dataclass
class RecordedRun:
    """A run's material with its prompts; what every policy shares is worked out once."""

    material: Material
    prompts: Prompts
    _births: dict[int | None, list[Birth]] = field(default_factory=dict)

    def births(self, cap: int | None = None) -> list[Birth]:
        if cap not in self._births:
            turns = self.material.turns
            answers = None if cap is None else [[born(m, cap) for m in turn.answers] for turn in turns]
            self._births[cap] = births(self.material, self.prompts, answers)
        return self._births[cap]

    def through(
        self,
        policy: NamedPolicy,
        *,
        n_ctx: int | None = None,
        cache_reuse: int = 0,
        on_request: OnRequest | None = None,
    ) -> Through:
        """This run under one policy."""
        return play(
            self.material,
            policy.policy,
            self.prompts,
            self.births(policy.cap),
            name=policy.name,
            cap=policy.cap,
            n_ctx=n_ctx,
            cache_reuse=cache_reuse,
            on_request=on_request,
        )


def replay(
    runs: Path | str | Records | Sequence[Path | str],
    policies: Sequence[str],
    *,
    n_ctx: int | None = None,
    cache_reuse: int = 0,
    sources: Sources | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Plays every finished run at or below `runs` through every policy.

    Args:
        runs: run folders, or folders of them.
        policies: names, with settings on demand (policies.named_policy); the others are compared with the first.
        n_ctx: another window than the recorded ones, in tokens.
        cache_reuse: as if the server moved cached pieces of at least so many tokens (`--cache-reuse`); 0 = never.
        sources: where tokens come from; by default opened and closed here.

    Raises:
        ReplayError: an unknown policy, or no run at all that can be replayed.
        RecordError: a folder that does not exist.
    """
    named = [named_policy(p, cache_reuse) for p in policies]
    if len({p.name for p in named}) < len(named) or not named:
        raise ReplayError("--policy: name at least one policy, and each of them once")
    if sources is None:
        with Sources() as own:
            return _replay(_records(runs), named, n_ctx, cache_reuse, own, progress)
    return _replay(_records(runs), named, n_ctx, cache_reuse, sources, progress)


def _replay(
    records: list[Records],
    named: list[NamedPolicy],
    n_ctx: int | None,
    cache_reuse: int,
    sources: Sources,
    progress: Progress | None,
) -> Replay:
    throughs: list[Through] = []
    played: list[str] = []
    problems = [p for r in records for p in r.problems]
    checks = {"checked": 0, "exact": 0}
    for record in (record for r in records for record in r.runs):
        try:
            run, check = read_run(record, sources)
            through = [run.through(p, n_ctx=n_ctx, cache_reuse=cache_reuse) for p in named]
        except (ReplayError, PromptError, ServingError) as e:
            problems.append(str(e) if isinstance(e, ReplayError) else f"run {record.folder.path.name}: {e}")
            continue
        throughs += through
        played.append(run.material.run)
        checks = {k: checks[k] + check[k] for k in checks}
        if progress is not None:
            progress(f"{run.material.run}: {len(run.material.turns)} steps")
    if not played:
        where = ", ".join(str(r.root) for r in records)
        raise ReplayError(
            problems[0] if problems else f"{where}: no finished run; name a folder that holds run folders"
        )
    notes = [STAND_IN] if any(p.policy.name == "summarise" for p in named) else []
    notes += [SUPPOSED] if cache_reuse else []
    if checks["exact"] < checks["checked"]:
        notes.append(
            f"{checks['checked'] - checks['exact']} of {checks['checked']} recorded prompts could not be rebuilt to the token; "
            "sizes of those runs are close, not exact."
        )
    return Replay(tuple(played), tuple(p.name for p in named), tuple(throughs), checks, tuple(notes), tuple(problems))


def read_run(record: Record, sources: Sources) -> tuple[RecordedRun, dict[str, int]]:
    """A run ready to be played, its rendering checked against every recorded prompt size.

    Where the template rendered here misses sizes that the run's own server meets, that server's rendering is used.
    """
    name = record.folder.path.name
    labels = {k: record.result.get(k) for k in ("task", "agent", "n_ctx", "policy", "model", "seed", "kind")}
    found = material(name, record.manifest["kind"], record.events, labels)
    prompts = sources.prompts(record.manifest, found.protocol, found.tools)
    check = _check(record.events, prompts)
    if check["exact"] < check["checked"] and record.manifest["kind"] != "scripted":
        other = Prompts(prompts.wire, prompts.tools, sources.by_server(record.manifest), prompts.pieces)
        again = _check(record.events, other)
        if again["exact"] > check["exact"]:
            prompts, check = other, again
    return RecordedRun(found, prompts), check


def _check(events: list[dict[str, Any]], prompts: Prompts) -> dict[str, int]:
    """How many recorded prompts were looked at, and how many have exactly the size that the server told."""
    checked = exact = 0
    for item in slot_requests(events):
        size = token_counts(item.response)[0]
        if not reached_slot(item.response) or size is None or item.messages is None:
            continue
        checked += 1
        try:
            exact += prompts.count(item.messages) == size
        except PromptError:
            continue
    return {"checked": checked, "exact": exact}


def _records(runs: Path | str | Records | Sequence[Path | str]) -> list[Records]:
    if isinstance(runs, (Path, str, Records)):
        return [load(runs)]
    return [load(each) for each in runs]
