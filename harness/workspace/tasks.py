"""A task: a folder with a repo to change, an instruction, hidden tests and a reference solution.

The folder has Harbor's layout, so that the same task runs there in a container:

    task.toml                   our own data stands in [metadata.calledshot] (see Task)
    instruction.md              what the agent is asked
    environment/repo/           the repo it changes; environment/Dockerfile for Harbor
    tests/                      hidden tests, laid over the repo when the agent has stopped; test.sh for Harbor
    solution/files/             the reference: files laid over the repo; solve.sh for Harbor
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.paths import shipped
from harness.workspace.errors import TaskError
from harness.workspace.functions import is_test_file, test_functions
from harness.workspace.paths import Entry, walk

MAX_BYTES = 256 * 2**20
MAX_FILES = 20_000
CACHES = frozenset({"__pycache__", ".pytest_cache"})
HARBOR_FILES = frozenset({"test.sh", "solve.sh", "Dockerfile"})
OPTIONS = {"asks_for_tests": bool, "visible_tests": list, "only_tests": list, "packages": list}


@dataclass(frozen=True)
class Task:
    """name: the folder's. digest: over all files. timeout_s: for one run of the hidden tests ([verifier].timeout_sec).

    From [metadata.calledshot]: asks_for_tests (the instruction asks for new tests), visible_tests (test files of the repo that the
    agent sees; by default all that pytest's patterns find), only_tests (the hidden tests that count, by pytest's names; by default
    all in the hidden files), packages (distributions the code needs beside pytest).
    """

    name: str
    path: Path
    digest: str
    instruction: str
    repo: Path
    hidden: Path
    reference: Path | None
    timeout_s: float
    visible_tests: tuple[str, ...]
    asks_for_tests: bool = False
    only_tests: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict, hash=False, compare=False)

    @cached_property
    def hidden_tests(self) -> tuple[str, ...]:
        """The hidden test files, as paths below tests/."""
        return tuple(_test_files(self.hidden))

    @cached_property
    def visible_names(self) -> tuple[str, ...]:
        """The visible tests as `file::function`, found without running anything (so without parameters)."""
        return _names(self.repo, self.visible_tests)

    @cached_property
    def hidden_names(self) -> tuple[str, ...]:
        return self.only_tests or _names(self.hidden, self.hidden_tests)


def task_folders(study: Path | None = None) -> Iterator[Path]:
    """The folders that hold tasks: the study's own first, then the shipped ones."""
    own = [] if study is None else [study / "tasks"]
    for folder in (*own, shipped("tasks")):
        if folder.is_dir():
            yield folder


def list_tasks(study: Path | None = None) -> dict[str, Path]:
    """All tasks by name; of two with the same name the study's own."""
    found: dict[str, Path] = {}
    for folder in task_folders(study):
        for path in sorted(folder.iterdir()):
            if (path / "task.toml").is_file():
                found.setdefault(path.name, path)
    return found


def load_task(path_or_name: str | Path, *, study: Path | None = None) -> Task:
    """Loads a task by the path of its folder, or by name from the study's tasks/ and then the shipped ones.

    Raises:
        TaskError: no such task, or a folder that does not hold a whole one; names the file and the mend.
    """
    path = Path(path_or_name)
    if len(path.parts) <= 1 and not (path / "task.toml").is_file():
        known = list_tasks(study)
        if str(path_or_name) not in known:
            raise TaskError(f"task {path_or_name}: no such task; known are {', '.join(sorted(known)) or 'none'}")
        path = known[str(path_or_name)]
    return _load(path.resolve())


def digest(folder: Path) -> str:
    """SHA-256 over the names, kinds, executable bits and bytes of all files below a folder, caches left out."""
    total = hashlib.sha256()
    for entry in sorted(walk(folder, CACHES), key=lambda e: e.name):
        if entry.is_link:
            kind, content = "link", os.fsencode(Path(entry.path).readlink())
        elif entry.is_file and not entry.name.endswith(".pyc"):
            kind, content = "program" if entry.stat.st_mode & 0o100 else "file", Path(entry.path).read_bytes()
        else:
            continue
        total.update(f"{kind} {len(content)} {entry.name}\n".encode("utf-8", "surrogateescape") + content)
    return total.hexdigest()


def _load(path: Path) -> Task:
    toml, instruction = path / "task.toml", path / "instruction.md"
    repo, hidden, reference = path / "environment" / "repo", path / "tests", path / "solution" / "files"
    if not path.is_dir():
        raise TaskError(f"{path}: no such task folder")
    config = _read_toml(toml)
    if not instruction.is_file():
        raise TaskError(f"{instruction}: missing; write what the agent is asked into it")
    text = _without_canary(instruction.read_text(encoding="utf-8"))
    if not text:
        raise TaskError(f"{instruction}: empty; write what the agent is asked into it")
    if not repo.is_dir():
        raise TaskError(f"{repo}: missing; it holds the repo that the agent changes")
    if not hidden.is_dir() or not _test_files(hidden):
        raise TaskError(f"{hidden}: no hidden tests; a task needs at least one test_*.py there")
    _check_files(path)
    for folder in (repo, hidden, reference):
        _check_links(folder)
    options = _options(toml, config)
    visible = options.get("visible_tests", _test_files(repo))
    for name in visible:
        if not (repo / name).is_file():
            raise TaskError(f"{toml}: visible_tests names {name}, which is not in {repo}")
    timeout = config.get("verifier", {}).get("timeout_sec", 600.0)
    if not isinstance(timeout, (int, float)) or timeout <= 0:
        raise TaskError(f"{toml}: verifier.timeout_sec must be a number of seconds above 0")
    return Task(
        name=path.name,
        path=path,
        digest=digest(path),
        instruction=text,
        repo=repo,
        hidden=hidden,
        reference=reference if reference.is_dir() else None,
        timeout_s=float(timeout),
        visible_tests=tuple(visible),
        asks_for_tests=options.get("asks_for_tests", False),
        only_tests=tuple(options.get("only_tests", ())),
        packages=tuple(options.get("packages", ())),
        metadata=config.get("metadata", {}),
    )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TaskError(f"{path}: missing; a task folder needs it (calledshot tasks new NAME writes one)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise TaskError(f"{path}: not TOML ({e})") from e


def _options(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    options = config.get("metadata", {}).get("calledshot", {})
    for key, value in options.items():
        kind = OPTIONS.get(key)
        if kind is None:
            raise TaskError(f"{path}: metadata.calledshot.{key}: no such key; known are {', '.join(OPTIONS)}")
        if not isinstance(value, kind) or (kind is list and not all(isinstance(v, str) for v in value)):
            raise TaskError(
                f"{path}: metadata.calledshot.{key}: expected {'true or false' if kind is bool else 'a list of texts'}"
            )
    return options


def _without_canary(text: str) -> str:
    """Harbor's benchmarks open instructions with a comment against training on them; it is not for the agent."""
    return re.sub(r"\A(?:\s*(?:<!--.*?-->|#[^\n]*canary[^\n]*))+", "", text, flags=re.S | re.I).strip()


def _test_files(folder: Path) -> list[str]:
    found = (e for e in walk(folder, CACHES) if e.is_file and not any(p.startswith(".") for p in e.name.split("/")))
    return sorted(e.name for e in found if is_test_file(e.name))


def _names(folder: Path, files: tuple[str, ...]) -> tuple[str, ...]:
    texts = ((name, (folder / name).read_text(encoding="utf-8", errors="replace")) for name in files)
    return tuple(f"{name}::{function}" for name, text in texts for function in test_functions(text))


def _check_files(path: Path) -> None:
    total = 0
    for count, entry in enumerate(walk(path, CACHES)):
        total += entry.stat.st_size if entry.is_file else 0
        if total > MAX_BYTES or count > MAX_FILES:
            most = f"{MAX_BYTES // 2**20} MiB or {MAX_FILES} files"
            raise TaskError(f"{path}: larger than {most}; take out what the task does not need")


def _check_links(folder: Path) -> None:
    for entry in walk(folder) if folder.is_dir() else ():
        if entry.is_link and _leads_out(folder, entry):
            raise TaskError(f"{entry.path}: a link that leads out of {folder}; replace it by the file itself")


def _leads_out(folder: Path, entry: Entry) -> bool:
    target = Path(entry.path).readlink()
    try:
        return target.is_absolute() or not Path(entry.path).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return True
