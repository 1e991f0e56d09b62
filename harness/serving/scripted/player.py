"""Which step of a scenario answers a request.

The rule: the first step in the file's order that is not used up and whose `when` holds. So steps without `when` play one after
the other, and a step with `when` before them is a reaction that waits for its moment.
"""

from __future__ import annotations

from harness.serving.errors import ServingError
from harness.serving.scripted.reply import Draft
from harness.serving.scripted.request import RequestView
from harness.serving.scripted.scenario import Scenario, Step
from harness.serving.scripted.simulation import SimulatedAgent
from harness.serving.scripted.texts import make


class Player:
    """Plays one scenario for one run; `rewind` starts it again."""

    def __init__(self, scenario: Scenario, seed: int | None) -> None:
        self._scenario = scenario
        self._seed = seed
        self.rewind()

    def rewind(self) -> None:
        self._played = [0] * len(self._scenario.steps)
        simulation = self._scenario.simulation
        self._agent = SimulatedAgent(simulation, self._seed) if simulation else None

    def next(self, view: RequestView) -> tuple[Step, Draft]:
        """The step for this request and its reply, before it is given a size; raises ServingError when none is left."""
        if self._agent is not None:
            return Step(), self._agent.next(view)
        for number, step in enumerate(self._scenario.steps):
            if (step.times is None or self._played[number] < step.times) and step.when.holds(view):
                self._played[number] += 1
                return step, self._draft(step, f"{self._scenario.name}/{number}/{self._played[number]}")
        raise ServingError(f"scenario {self._scenario.name}: no step is left for request {view.number}")

    def _draft(self, step: Step, seed: str) -> Draft:
        folder = self._scenario.folder
        return Draft(
            say=str(make(step.say, folder, f"{seed}/say")),
            think=str(make(step.think, folder, f"{seed}/think")),
            calls=tuple((name, make(args, folder, f"{seed}/{name}")) for name, args in step.calls),
        )
