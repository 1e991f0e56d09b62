"""Instances in SWE-bench's form over repos that lie on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from harness.workspace.copy import copy_tree
from harness.workspace.errors import TaskError
from harness.workspace.functions import is_test_file
from harness.workspace.importing.choice import Choice, Found
from harness.workspace.task_format import Draft, write_task
from harness.workspace.tree import entries


def swebench(source: Path, choice: Choice, temp: Path) -> Iterator[Found]:
    """A JSONL file in SWE-bench's form whose `repo` is a folder (absolute, or seen from the file).

    With a base_commit, that commit of the folder's git repo is taken, else the folder as it is.
    """
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name = str(row["instance_id"])
        except (ValueError, KeyError, TypeError):
            raise TaskError(f"{source}, line {number}: not a JSON object with an instance_id") from None
        yield name, lambda into, r=row, n=name: write_task(_instance(source, r, n, temp), into)


def _instance(source: Path, row: dict[str, Any], name: str, temp: Path) -> Draft:
    base, tested, solved = (temp / name / part for part in ("base", "tested", "solved"))
    _checkout(source, row, base)
    for tree, patch in ((tested, row["test_patch"]), (solved, row["patch"])):
        copy_tree(base, tree)
        _apply(tree, patch, name)
    tests, reference = _changed(base, tested), _changed(base, solved)
    only = [*_names(row["FAIL_TO_PASS"]), *_names(row.get("PASS_TO_PASS", []))]
    if not only:
        raise TaskError("neither FAIL_TO_PASS nor PASS_TO_PASS names a test")
    for test in only:
        path = test.split("::")[0]
        if path not in tests and (tested / path).is_file():
            tests[path] = tested / path
    return Draft(
        name=name,
        description=f"{row.get('repo')}, {name}",
        instruction=row["problem_statement"],
        repo={e.name: Path(e.path) for e in entries(base) if e.is_file},
        tests=tests,
        reference=reference,
        only_tests=only,
        visible_tests=sorted(e.name for e in entries(base) if e.is_file and is_test_file(e.name)),
        keywords=("python", "swe-bench"),
        timeout_s=600,
    )


def _names(listed: list[str] | str) -> list[str]:
    """The lists are JSON lists; the hub's copies keep them as JSON in a string."""
    try:
        return list(json.loads(listed)) if isinstance(listed, str) else list(listed)
    except ValueError:
        raise TaskError("FAIL_TO_PASS or PASS_TO_PASS is not a JSON list") from None


def _changed(before: Path, after: Path) -> dict[str, Path]:
    """The files that a patch wrote. One that deletes files can't be laid over a repo."""
    old = {e.name: Path(e.path) for e in entries(before)}
    new = {e.name: Path(e.path) for e in entries(after)}
    if old.keys() - new.keys():
        raise TaskError(
            f"its patch deletes {', '.join(sorted(old.keys() - new.keys()))}, which a task folder can't say"
        )
    return {name: path for name, path in new.items() if name not in old or path.read_bytes() != old[name].read_bytes()}


def _checkout(source: Path, row: dict[str, Any], into: Path) -> None:
    repo = (source.parent / str(row["repo"])).resolve()
    if not repo.is_dir():
        raise TaskError(f"repo {row['repo']} is no folder here; clone it and name the folder")
    commit = row.get("base_commit")
    if not commit:
        copy_tree(repo, into)
        return
    if str(commit).startswith("-"):
        raise TaskError(f"base_commit {commit!r} is not a commit")
    into.mkdir(parents=True)
    archive = into.with_suffix(".tar")
    _git("-C", str(repo), "archive", "--format=tar", "-o", str(archive), str(commit))
    shutil.unpack_archive(archive, into, "tar", filter="data")


def _apply(tree: Path, patch: str, name: str) -> None:
    for line in patch.splitlines():
        if line.startswith(("+++ ", "--- ")) and ".." in PurePosixPath(line[4:].split("\t")[0]).parts:
            raise TaskError(f"a patch of {name} leads out of the repo")
    if patch.strip():
        _git(
            "-C", str(tree), "apply", "--whitespace=nowarn", "-", stdin=patch, GIT_CEILING_DIRECTORIES=str(tree.parent)
        )


def _git(*words: str, stdin: str = "", **env: str) -> None:
    try:
        result = subprocess.run(
            ["git", *words], input=stdin, text=True, capture_output=True, env=os.environ | env, check=False
        )
    except FileNotFoundError:
        raise TaskError("git is needed for this format; install it") from None
    if result.returncode:
        said = result.stderr.strip().splitlines() or ["no reason given"]
        raise TaskError(f"git {words[2]}: {said[-1]}")
