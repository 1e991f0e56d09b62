"""A scenario: what the double answers, read from YAML. docs/scenarios.md describes the format.

Everything is checked when the file is read, apart from `from_file`, which is read when its step is played; a mistake is one
line that names the file, the step and the mend.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from harness.serving.errors import ServingError
from harness.serving.scripted.condition import Condition, ConditionError
from harness.serving.scripted.decisions import DecisionError, Decisions
from harness.serving.scripted.failures import FAILURES
from harness.serving.scripted.simulation import Simulation

SHIPPED = Path(__file__).with_name("scenarios")
CutCall = Literal["length", "unparsed_old", "unparsed_new"]
Wording = Literal["new", "middle", "old"]
Part = Literal["think", "say", "call"]


class ScenarioError(ServingError):
    """A scenario that can't be played; one line that names the file, the place in it and the mend."""


@dataclass(frozen=True)
class Behaviour:
    """The server under the scenario.

    prompt_rate, write_rate: tokens a second that `timings` and the log report; nothing sleeps. cut_call: what becomes of a
    reply whose call was cut: llama.cpp of autumn 2026 gives the half call as `length`, older builds answered 500. overflow: the
    wording of the 400. check_history: refuse a history with call arguments that are not JSON. keep_thinking: the template renders
    the thinking of earlier replies. api_key: asked of every request when set.
    """

    prompt_rate: float = 400.0
    write_rate: float = 35.0
    cut_call: CutCall = "length"
    overflow: Wording = "new"
    check_history: bool = True
    keep_thinking: bool = True
    api_key: str | None = None


@dataclass(frozen=True)
class Step:
    """One reply, or one failure. Texts are plain or makers (see texts.py), calls are (name, arguments).

    fill: the reply runs into the window end. generated: the reply has exactly that many tokens, its end token included. fill_in:
    the part that is drawn out for it. times: how often the step may be played, None for ever. latency_s: seconds really waited.
    """

    say: Any = ""
    think: Any = ""
    calls: tuple[tuple[str, Any], ...] = ()
    fill: Literal["window"] | None = None
    generated: int | None = None
    fill_in: Part | None = None
    fail: str | None = None
    prompt_tokens: int | None = None
    latency_s: float = 0.0
    times: int | None = 1
    when: Condition = field(default_factory=Condition)


@dataclass(frozen=True)
class Scenario:
    """steps are played by the rule in player.py; a simulation, where there is one, answers in their place."""

    name: str
    about: str
    folder: Path
    behaviour: Behaviour = field(default_factory=Behaviour)
    steps: tuple[Step, ...] = ()
    simulation: Simulation | None = None
    decisions: Decisions | None = None


def find(name: str, folders: tuple[Path, ...] = ()) -> Path:
    """The file of a scenario: a path as it is, else NAME.yaml in one of the folders or among the shipped ones."""
    given = Path(name)
    if given.suffix in (".yaml", ".yml"):
        if given.is_file():
            return given
        raise ScenarioError(f"server.scenario: {name} is no file")
    for folder in (*folders, SHIPPED):
        if (found := folder / f"{name}.yaml").is_file():
            return found
    raise ScenarioError(f"server.scenario: no scenario {name!r}; shipped: {', '.join(shipped())}, or give a .yaml file")


def shipped() -> list[str]:
    """The names of the scenarios that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def read(path: Path) -> Scenario:
    """Reads and checks a scenario file.

    Raises:
        ScenarioError: a file that can't be read, or what does not fit the format.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ScenarioError(f"{path}: can't be read ({e.strerror})") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise ScenarioError(f"{path}: not YAML ({' '.join(str(e).split())})") from e
    try:
        return _scenario(document, path)
    except (ConditionError, DecisionError, _Wrong) as e:
        raise ScenarioError(f"{path}: {e}") from e


class _Wrong(ValueError):
    pass


def _scenario(document: Any, path: Path) -> Scenario:
    top = _mapping(document, "the file", ("about", "server", "steps", "simulate", "decisions"))
    if bool(top.get("steps")) == bool("simulate" in top):
        raise _Wrong("needs either steps or simulate")
    steps = top.get("steps") or []
    if not isinstance(steps, list):
        raise _Wrong(f"steps: expected a list, got {steps!r}")
    return Scenario(
        name=path.stem,
        about=" ".join(str(top.get("about", "")).split()),
        folder=path.parent,
        behaviour=_fields(Behaviour, top.get("server"), "server"),
        steps=tuple(_step(step, f"steps[{number}]") for number, step in enumerate(steps)),
        simulation=_simulation(top["simulate"]) if "simulate" in top else None,
        decisions=Decisions.read(top["decisions"]) if top.get("decisions") else None,
    )


def _simulation(value: Any) -> Simulation:
    try:
        return Simulation.read(_mapping(value or {}, "simulate", Simulation.keys()))
    except (TypeError, ValueError) as e:
        raise _Wrong(f"simulate: {e}") from e


def _step(value: Any, where: str) -> Step:
    names = [f.name for f in dataclasses.fields(Step)] + ["repeat"]
    given = dict(_mapping(value, where, names))
    if "repeat" in given:
        if given.pop("repeat") != "forever" or "times" in given:
            raise _Wrong(f"{where}: repeat takes `forever`; write times: N for a number")
        given["times"] = None
    if "calls" in given:
        given["calls"] = tuple(_call(call, f"{where}.calls[{n}]") for n, call in enumerate(given["calls"] or []))
    if "when" in given:
        given["when"] = Condition.read(given["when"], f"{where}.when")
    step = Step(**given)
    if step.fail is not None and step.fail not in FAILURES:
        raise _Wrong(f"{where}.fail: {step.fail!r} is not one of {', '.join(FAILURES)}")
    if step.fill not in (None, "window"):
        raise _Wrong(f"{where}.fill: takes `window`; write generated: N for a number of tokens")
    if step.fill_in not in (None, *get_args(Part)):
        raise _Wrong(f"{where}.fill_in: {step.fill_in!r} is not one of {', '.join(get_args(Part))}")
    for name in ("generated", "times"):
        number = getattr(step, name)
        if number is not None and not (isinstance(number, int) and number >= 1):
            raise _Wrong(f"{where}.{name}: needs a whole number of at least 1, got {number!r}")
    if not isinstance(step.latency_s, (int, float)) or step.latency_s < 0:
        raise _Wrong(f"{where}.latency_s: needs seconds, got {step.latency_s!r}")
    return step


def _call(value: Any, where: str) -> tuple[str, Any]:
    if not isinstance(value, dict) or len(value) != 1:
        raise _Wrong(f"{where}: write a call as one `tool_name: arguments` pair, got {value!r}")
    ((name, arguments),) = value.items()
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, (dict, str)):
        raise _Wrong(f"{where}: arguments are a mapping, or raw text in quotes, got {arguments!r}")
    return str(name), arguments


def _fields(cls: type, value: Any, where: str) -> Any:
    given = _mapping(value or {}, where, [f.name for f in dataclasses.fields(cls)])
    made = cls(**given)
    if isinstance(made, Behaviour):
        for name, allowed in (("cut_call", get_args(CutCall)), ("overflow", get_args(Wording))):
            if getattr(made, name) not in allowed:
                raise _Wrong(f"{where}.{name}: {getattr(made, name)!r} is not one of {', '.join(allowed)}")
        for name in ("prompt_rate", "write_rate"):
            if not isinstance(getattr(made, name), (int, float)) or getattr(made, name) <= 0:
                raise _Wrong(f"{where}.{name}: needs tokens a second above 0")
    return made


def _mapping(value: Any, where: str, known: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{where}: expected names and values, got {value!r}")
    for key in value:
        if key not in known:
            raise _Wrong(f"{where}: no such key {key!r}; known here: {', '.join(known)}")
    return value
