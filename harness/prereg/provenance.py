"""Was the call made before the ball? Every run is held against every registered version.

registered    the version was in the history of the commit the run was made from, and the run's manifest names it
late          the run was made from a commit that does not hold the version yet
changed       what the run was made under is not what stands now: another digest, an uncommitted change, another task
unregistered  the run was made under no registration of this experiment
unverifiable  there is no history to look at, or the history was rewritten since
published     the articles' own predictions; no run folders, nothing to verify

What nobody can see from here: commit dates, which are free to forge and therefore never used (only ancestry is), a private
history that was rewritten together with the run folders, and events that were edited consistently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.prereg.history import History
from harness.prereg.registration import Registration, Version, introduced, registration_at

LIMITS = (
    "Commit dates can be forged; only ancestry and digests were looked at.",
    "A private history that was rewritten together with the run folders can't be told from an honest one; push the "
    "registration to a server you don't control, or have its digest printed somewhere, before the runs.",
    "Events and grading that were edited consistently by hand are not noticed; result.json edited alone is.",
    "Runs made and thrown away elsewhere leave no trace; missing cells of the grid do.",
)


class Provenance(StrEnum):
    REGISTERED = "registered"
    PUBLISHED = "published"
    UNVERIFIABLE = "unverifiable"
    UNREGISTERED = "unregistered"
    LATE = "late"
    CHANGED = "changed"

    @property
    def holds(self) -> bool:
        return self in (Provenance.REGISTERED, Provenance.PUBLISHED)


_WORST_FIRST = (
    Provenance.CHANGED,
    Provenance.LATE,
    Provenance.UNREGISTERED,
    Provenance.UNVERIFIABLE,
    Provenance.REGISTERED,
)


@dataclass(frozen=True)
class Standing:
    """word and, in one line, why. notes: what does not change the word but should be seen, such as a dirty tree."""

    word: Provenance
    why: str
    notes: tuple[str, ...] = ()


def standing_of_run(
    manifest: Mapping[str, Any], experiment: str, version: Version, registration: Registration, history: History | None
) -> Standing:
    """How one run stands to one registered version. `history` is the study's repository as it is now."""
    notes = _dirty_notes(manifest)
    named = manifest.get("registration")
    study = manifest.get("study") or {}
    if named is None:
        return Standing(*_without_registration(study, version, registration, history), notes)
    if named.get("experiment") != experiment:
        why = f"the run was made under the registration of {named.get('experiment')!r}"
        return Standing(Provenance.UNREGISTERED, why, notes)
    under = registration.with_digest(named.get("digest"))
    if under is None:
        why = (
            f"the run was made under the registration {_short(named.get('digest'))}, "
            f"which is none of those that stand now ({', '.join(_short(v.digest) for v in registration.versions)})"
        )
        return Standing(Provenance.CHANGED, why, notes)
    if under.number < version.number:
        why = f"the run was made under version {under.number}; version {version.number} came after it"
        return Standing(Provenance.LATE, why, notes)
    changed = _changed_inputs(manifest, study, under, named)
    if changed:
        return Standing(Provenance.CHANGED, changed, notes)
    return Standing(*_by_history(study, str(named.get("file")), version, registration, history), notes)


def standing_without_runs(
    version: Version, registration_path: str, history: History | None, dirty: Sequence[str]
) -> Standing:
    """How a version stands before the first run."""
    if history is None:
        return Standing(Provenance.UNVERIFIABLE, "no git history to look at")
    if registration_path in dirty or introduced(history, registration_path, version.digest) is None:
        return Standing(Provenance.UNREGISTERED, f"{registration_path} is not committed yet")
    return Standing(Provenance.REGISTERED, "no run yet")


def worst(standings: Mapping[str, Standing]) -> Standing:
    """One standing for a line that speaks of many runs (by run id): the worst word, with the runs it is about."""
    words = {standing.word for standing in standings.values()}
    if not words:
        return Standing(Provenance.UNREGISTERED, "no run and no registration")
    word = next(w for w in _WORST_FIRST if w in words)
    whys: dict[str, list[str]] = {}
    notes: dict[str, list[str]] = {}
    for run_id, standing in standings.items():
        if standing.word is word:
            whys.setdefault(standing.why, []).append(run_id)
        for note in standing.notes:
            notes.setdefault(note, []).append(run_id)
    return Standing(word, "; ".join(_about(whys, len(standings))), tuple(_about(notes, len(standings))))


def _without_registration(
    study: Mapping[str, Any], version: Version, registration: Registration, history: History | None
) -> tuple[Provenance, str]:
    commit = study.get("commit")
    if history is None or commit is None or not history.has(commit):
        return Provenance.UNVERIFIABLE, "the run names no registration, and its commit can't be looked at here"
    path = f"{_prefix(history, study)}experiments/{registration.experiment}/registration.json"
    at_run = registration_at(history, commit, path)
    if at_run is not None and at_run.with_digest(version.digest):
        return Provenance.UNREGISTERED, "the run names no registration, though its commit holds one"
    return Provenance.LATE, f"registered after the run: its commit {commit[:12]} holds no registration"


def _changed_inputs(
    manifest: Mapping[str, Any], study: Mapping[str, Any], under: Version, named: Mapping[str, Any]
) -> str | None:
    """What the run was made with that differs from what its version locked: uncommitted files, another task."""
    file = str(named.get("file"))
    prefix = file.removesuffix(f"experiments/{named.get('experiment')}/registration.json")
    locked = [f"{prefix}{path}" for path in under.files]
    touched = [path for path in locked if any(_is_under(path, dirty) for dirty in study.get("dirty") or ())]
    if touched and study.get("commit") is not None:
        return f"the run was made with uncommitted changes in {', '.join(touched)}"
    task = manifest.get("task") or {}
    registered_task = under.tasks.get(str(task.get("name")))
    if registered_task is not None and task.get("digest") != registered_task:
        return f"the run's task {task.get('name')} is not the registered one (digest {_short(task.get('digest'))})"
    return None


def _by_history(
    study: Mapping[str, Any],
    file: str,
    version: Version,
    registration: Registration,
    history: History | None,
) -> tuple[Provenance, str]:
    commit = study.get("commit")
    if commit is None:
        return Provenance.UNVERIFIABLE, "the run was made outside git"
    if history is None:
        return Provenance.UNVERIFIABLE, "no git history to look at"
    is_shallow = history.shallow()
    if not history.has(commit):
        cause = "a shallow clone" if is_shallow else "the history was rewritten, or this is another repository"
        return Provenance.UNVERIFIABLE, f"the run's commit {commit[:12]} is not here ({cause})"
    at_run = registration_at(history, commit, file)
    if at_run is None or at_run.with_digest(version.digest) is None:
        return Provenance.LATE, f"committed after the run: its commit {commit[:12]} does not hold the registration"
    prefix = file.removesuffix(f"experiments/{registration.experiment}/registration.json")
    for path, digest in at_run.latest.files.items():
        content = history.file_at(commit, f"{prefix}{path}")
        if content is None or hashlib.sha256(content).hexdigest() != digest:
            return Provenance.CHANGED, f"{path} in the run's commit {commit[:12]} is not what was registered"
    origin = introduced(history, file, version.digest)
    if origin is not None and history.is_ancestor(origin, commit):
        return (
            Provenance.REGISTERED,
            f"version {version.number}, committed in {origin[:12]}, an ancestor of the run's commit",
        )
    if is_shallow:
        return Provenance.UNVERIFIABLE, "a shallow clone: the commit of the registration is not here"
    return (
        Provenance.UNVERIFIABLE,
        f"the history was rewritten: the registration's commit of today is no ancestor of the run's commit {commit[:12]}",
    )


def _dirty_notes(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    study, tool = manifest.get("study") or {}, manifest.get("harness") or {}
    notes = []
    if study.get("clean") is False:
        notes.append(f"made from a dirty tree: {', '.join(study.get('dirty') or ['files not named'])}")
    if tool.get("clean") is False and tool.get("commit") != study.get("commit"):
        notes.append(f"made with uncommitted changes in the harness (commit {_short(tool.get('commit'))})")
    return tuple(notes)


def _prefix(history: History, study: Mapping[str, Any]) -> str:
    """The study's folder from the repository's top, going by the root the manifest names."""
    root, top = str(study.get("root") or ""), str(history.root.resolve())
    return f"{root[len(top) + 1 :]}/" if root.startswith(f"{top}/") else ""


def _is_under(path: str, dirty: str) -> bool:
    return path == dirty or (dirty.endswith("/") and path.startswith(dirty))


def _about(texts: Mapping[str, Sequence[str]], total: int) -> list[str]:
    """Each text with the runs it is about."""
    every = f"all {total} runs" if total > 1 else "the one run"
    return [f"{text} ({every if len(ids) == total else ', '.join(ids)})" for text, ids in texts.items()]


def _short(digest: object) -> str:
    return str(digest)[:12]
