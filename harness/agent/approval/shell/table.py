"""The table of commands (data/table.yaml): which options and operands only read.

Contract: what is not in the table asks. The head of the YAML file documents its words; loading checks that no other words
are used, so a slip in an extension is an error (ValueError naming the command and the key) and not a hole.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import yaml

_OPTION_KEYS = ("flags", "text", "read", "number", "optional", "pairs", "match", "digits")
_ROW_KEYS = ("operands", "least", "most", "unless", "opens", "judge", "through", "output", "follow", "subcommands")
_COMMAND_KEYS = (*_OPTION_KEYS, *_ROW_KEYS)
_OPERANDS = ("read", "text", "text read", "number", "name", "none", "date")
JUDGES = (
    *(
        "awk",
        "cd",
        "command",
        "env",
        "eval",
        "exec",
        "find",
        "git",
        "grep",
        "jq",
        "jump",
        "ls",
        "nohup",
        "printf",
        "pytest",
    ),
    *("python", "read", "rg", "sed", "set", "shell", "test", "words", "wrapper", "xargs"),
)
_OUTPUTS = ("number", "names")


@dataclass(frozen=True)
class Options:
    """Which options a command may be given. `takes` maps an option to the check of its value: text, read, number, or a
    pattern the whole value must match. `optional` options take a value only when it is glued on. `pairs` take two words.
    """

    flags: frozenset[str] = frozenset()
    takes: Mapping[str, str | re.Pattern[str]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    digits: str = ""


@dataclass(frozen=True)
class Command:
    """One row of the table."""

    name: str
    options: Options = Options()
    operands: str = "none"
    least: int = 0
    most: int | None = None
    unless: frozenset[str] = frozenset()
    opens: int | None = None
    judge: str | None = None
    through: frozenset[str] | None = None
    output: str | None = None
    follow: frozenset[str] = frozenset()
    subcommands: Mapping[str, "Command"] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The whole table. `prefix` and `plain`: variables that may be set, with what they may hold."""

    commands: Mapping[str, Command]
    version_only: frozenset[str]
    system_folders: tuple[str, ...]
    variables: Mapping[str, re.Pattern[str]]
    plain_variables: re.Pattern[str]


@cache
def table() -> Table:
    """The table that ships with the package."""
    return read_table(resources.files("harness.agent.approval").joinpath("data/table.yaml").read_text(encoding="utf-8"))


def read_table(text: str) -> Table:
    """Build a table from YAML text; ValueError names the command and key that is wrong."""
    told = yaml.safe_load(text)
    commands: dict[str, Command] = {}
    for names, row in told["commands"].items():
        for name in str(names).split():
            commands[name] = _command(name, row or {})
    return Table(
        commands=commands,
        version_only=frozenset(told["version_only"].split()),
        system_folders=tuple(told["system_folders"].split()),
        variables={name: re.compile(pattern) for name, pattern in told["variables"].items()},
        plain_variables=re.compile(told["plain_variables"]),
    )


def _command(name: str, row: Mapping[str, Any]) -> Command:
    if unknown := row.keys() - set(_COMMAND_KEYS):
        raise ValueError(f"approval table: {name} has an unknown key {sorted(unknown)[0]!r}")
    operands = row.get("operands", "none")
    if operands not in _OPERANDS:
        raise ValueError(f"approval table: {name} has unknown operands {operands!r}; known: {', '.join(_OPERANDS)}")
    if row.get("judge") not in (None, *JUDGES):
        raise ValueError(f"approval table: {name} has an unknown judge {row['judge']!r}; known: {', '.join(JUDGES)}")
    if row.get("output") not in (None, *_OUTPUTS):
        raise ValueError(
            f"approval table: {name} has an unknown output {row['output']!r}; known: {', '.join(_OUTPUTS)}"
        )
    takes: dict[str, str | re.Pattern[str]] = {}
    for kind in ("text", "read", "number"):
        takes.update(dict.fromkeys(_names(row, kind), kind))
    takes.update({str(option): re.compile(pattern) for option, pattern in row.get("match", {}).items()})
    options = Options(
        flags=_names(row, "flags"),
        takes=takes,
        optional=_names(row, "optional"),
        pairs=_names(row, "pairs"),
        digits=row.get("digits", ""),
    )
    return Command(
        name=name,
        options=options,
        operands=operands,
        least=row.get("least", 0),
        most=row.get("most"),
        unless=_names(row, "unless"),
        opens=row.get("opens"),
        judge=row.get("judge"),
        through=_names(row, "through") if "through" in row else None,
        output=row.get("output"),
        follow=_names(row, "follow"),
        subcommands={
            sub: _command(f"{name} {sub}", inner or {})
            for subs, inner in row.get("subcommands", {}).items()
            for sub in str(subs).split()
        },
    )


def _names(row: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(str(row.get(key) or "").split())
