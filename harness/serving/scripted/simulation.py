"""A simulated agent: draws what it does from distributions, the same draws for the same seed under every policy.

One useful step thinks, then either writes a file or reads one whose text has the drawn size (`simulation_task` makes such
files). Now and then a step needs an older result; where that is no longer in the conversation the agent reads its file again,
which is an extra step. A reply that did not reach the history (cut, dropped, refused) is written again, twice at most. After
its useful steps the agent says it is done. Sizes and rates are by default those of the project's clearing simulation.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass, field
from typing import Any

from harness.serving.scripted import filler
from harness.serving.scripted.reply import Draft, of_size
from harness.serving.scripted.request import RequestView
from harness.serving.scripted.simulation_task import Shelf

_ATTEMPTS = 3


@dataclass(frozen=True)
class Simulation:
    """Token counts are [least, most], drawn evenly; chances are per useful step.

    steps: useful steps until the agent says it is done. write_call: the whole call, arguments included. needs_older, age_rate:
    chance that an older result is needed, and how old (1 + an exponential draw of that rate). mistake: chance of an edit that
    can't work before the step. stops_early: chance of saying it is done instead. scale: a factor on thinking, writing, results.
    seed: of the draws; `request` takes the seed of the first request, so that every run of a sweep draws its own.
    """

    steps: int = 30
    thinking: tuple[int, int] = (100, 800)
    write: float = 0.3
    write_call: tuple[int, int] = (500, 1500)
    read_call: int = 40
    results: tuple[int, int] = (100, 2000)
    needs_older: float = 0.25
    age_rate: float = 0.43
    mistake: float = 0.0
    stops_early: float = 0.0
    scale: float = 1.0
    seed: int | str = "request"
    shelf: Shelf = field(default_factory=Shelf)

    @classmethod
    def keys(cls) -> list[str]:
        return [f.name for f in dataclasses.fields(cls)]

    @classmethod
    def read(cls, given: dict[str, Any]) -> Simulation:
        """Builds the settings from YAML values; raises ValueError or TypeError for what does not fit."""
        values = dict(given)
        for name in ("thinking", "write_call", "results"):
            if name in values:
                values[name] = _range(name, values[name])
        for name in ("write", "needs_older", "mistake", "stops_early"):
            if name in values and not (isinstance(values[name], (int, float)) and 0 <= values[name] <= 1):
                raise ValueError(f"{name}: needs a chance between 0 and 1, got {values[name]!r}")
        for name in ("steps", "read_call"):
            if name in values and not (isinstance(values[name], int) and values[name] >= 1):
                raise ValueError(f"{name}: needs a whole number of at least 1, got {values[name]!r}")
        for name in ("age_rate", "scale"):
            if name in values and not (isinstance(values[name], (int, float)) and values[name] > 0):
                raise ValueError(f"{name}: needs a number above 0, got {values[name]!r}")
        if "shelf" in values:
            values["shelf"] = Shelf.read(values["shelf"])
        if not (isinstance(values.get("seed", 0), int) or values["seed"] == "request"):
            raise ValueError(f"seed: a whole number, or `request`; got {values['seed']!r}")
        return cls(**values)


@dataclass(frozen=True)
class Draw:
    """What one useful step does. think, call, result: tokens (a write has no result to speak of)."""

    think: int
    write: bool
    call: int
    result: int
    need: bool
    age: int
    slip: bool
    stop: bool


def draw(simulation: Simulation, seed: int | str, number: int) -> Draw:
    """The draw of a useful step, the same for the same seed and number whatever happened before."""
    s = simulation
    rng = random.Random(f"{seed}-{number}")
    write = rng.random() < s.write
    think = rng.randint(*s.thinking)
    call = rng.randint(*s.write_call) if write else s.read_call
    result = 0 if write else rng.randint(*s.results)
    # The order of the draws is the clearing simulation's; what it does not have comes last.
    need, age = rng.random() < s.needs_older, 1 + int(rng.expovariate(s.age_rate))
    slip, stop = rng.random() < s.mistake, rng.random() < s.stops_early

    def scaled(tokens: int) -> int:
        return max(20, int(tokens * s.scale))

    return Draw(
        scaled(think), write, scaled(call) if write else call, scaled(result) if result else 0, need, age, slip, stop
    )


class SimulatedAgent:
    """Answers one run's requests.

    A reply has arrived when its call is the newest of the history; no two replies in a row call the same tool on the same path.
    """

    def __init__(self, simulation: Simulation, seed: int | None) -> None:
        self._s = simulation
        self._seed: int | str | None = seed if simulation.seed == "request" else simulation.seed
        self._useful = 0
        self._last: Draw | None = None
        self._reads: list[str] = []
        self._queue: list[Draft] = []
        self._attempts = 0
        self._sent: tuple[str, str] | None = None

    def next(self, view: RequestView) -> Draft:
        """The reply to a request."""
        if self._seed is None:
            self._seed = view.seed or 0
        if self._sent is not None and (self._sent == view.last_call or self._attempts >= _ATTEMPTS):
            self._arrived()
        if not self._queue:
            self._plan(view)
        self._attempts += 1
        draft = self._queue[0]
        self._sent = next(((name, str(arguments["path"])) for name, arguments in draft.calls), ("", ""))
        return draft

    def _arrived(self) -> None:
        for name, arguments in self._queue.pop(0).calls:
            if name == "read_file":
                self._reads.append(arguments["path"])
        self._sent, self._attempts = None, 0

    def _plan(self, view: RequestView) -> None:
        """Queues the next replies: a re-read where the last step needs one, else the next useful step."""
        last, self._last = self._last, None
        if last is not None and last.need and len(self._reads) > last.age:
            older = self._reads[-1 - last.age]
            if view.cleared(older):
                self._queue.append(self._reading(last.think, self._s.read_call, older, "again"))
                return
        d = draw(self._s, self._seed or 0, self._useful)
        if self._useful >= self._s.steps or d.stop:
            self._queue.append(Draft(say="Everything that was asked for is done."))
            return
        self._last = d
        self._useful += 1
        if d.slip:
            arguments = {"path": self._s.shelf.path(d.result, 0), "old": "no such text", "new": "another text"}
            self._queue.append(Draft(calls=(("edit_file", arguments),)))
        self._queue.append(
            self._writing(d) if d.write else self._reading(d.think, d.call, self._unread(d.result), "new")
        )

    def _unread(self, tokens: int) -> str:
        """A file of about that size that was not read yet; where all of that size were, the one read longest ago."""
        paths = [self._s.shelf.path(tokens, copy) for copy in range(self._s.shelf.copies)]
        return min(paths, key=lambda path: max((n for n, read in enumerate(self._reads) if read == path), default=-1))

    def _reading(self, think: int, call: int, path: str, why: str) -> Draft:
        draft = Draft(
            think=filler.prose(max(1, think - 20), f"{self._seed}/{path}/{why}"), calls=(("read_file", {"path": path}),)
        )
        return _sized(draft, think + call, "think")

    def _writing(self, d: Draw) -> Draft:
        think = filler.prose(d.think, f"{self._seed}/{self._useful}/think")
        arguments = {"path": f"drafts/{self._useful:03d}.txt", "content": f"Draft {self._useful}:"}
        return _sized(Draft(think=think, calls=(("write_file", arguments),)), d.think + d.call, "call")


def _sized(draft: Draft, tokens: int, part: str) -> Draft:
    return of_size(draft, max(tokens, draft.tokens()), part)


def _range(name: str, value: Any) -> tuple[int, int]:
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) and v >= 1 for v in value)):
        raise ValueError(f"{name}: needs [least, most] tokens, got {value!r}")
    if value[0] > value[1]:
        raise ValueError(f"{name}: {value[0]} is more than {value[1]}")
    return value[0], value[1]
