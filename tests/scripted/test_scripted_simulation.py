"""The simulated agent: its draws, its re-reads, and the task it plays on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from harness.serving.errors import ServingError
from harness.serving.scripted import Shelf, make_simulation_task
from harness.serving.scripted.simulation import Simulation, draw
from harness.serving.scripted.tokenizer import count
from harness.workspace.tasks import load_task

from .conftest import Double, tool, user

Play = Callable[..., Double]
SHELF = Shelf(least=100, most=2000, step=100, copies=2)
SIMULATE = {"steps": 12, "shelf": {"step": 100, "copies": 2}}
PLACEHOLDER = "[cleared to save context: 1 characters. Call the tool again if you need it.]"


def test_the_task_is_whole_and_its_files_have_the_asked_sizes(tmp_path: Path) -> None:
    task = load_task(make_simulation_task(tmp_path / "task", SHELF, instruction_tokens=120))
    assert count(task.instruction) == 120
    files = dict(SHELF.files())
    assert len(files) == 40
    assert {path: count((task.repo / path).read_text(encoding="utf-8")) for path in files} == files
    again = load_task(make_simulation_task(tmp_path / "again", SHELF, instruction_tokens=120))
    assert again.digest == task.digest
    assert (
        load_task(make_simulation_task(tmp_path / "other", SHELF, instruction_tokens=120, seed=1)).digest != task.digest
    )


def test_a_task_is_never_made_over_something(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(ServingError, match="not empty"):
        make_simulation_task(tmp_path)
    with pytest.raises(ServingError, match="instruction_tokens: needs at least"):
        make_simulation_task(tmp_path / "new", instruction_tokens=3)


def test_sizes_and_rates_are_those_of_the_clearing_simulation() -> None:
    draws = [draw(Simulation(), seed, n) for seed in range(100) for n in range(30)]
    writes = [d for d in draws if d.write]
    reads = [d for d in draws if not d.write]
    assert len(writes) / len(draws) == pytest.approx(0.3, abs=0.03)
    assert mean(d.need for d in draws) == pytest.approx(0.25, abs=0.03)
    for values, least, most in (
        ([d.think for d in draws], 100, 800),
        ([d.call for d in writes], 500, 1500),
        ([d.result for d in reads], 100, 2000),
    ):
        assert least <= min(values) <= max(values) <= most
        assert mean(values) == pytest.approx((least + most) / 2, rel=0.05)
    assert {d.call for d in reads} == {40}
    assert min(d.age for d in draws) == 1
    # 1 + floor of an exponential draw of rate .43 is geometric with p = 1 - e^-.43.
    assert mean(d.age for d in draws) == pytest.approx(1 / (1 - 2.718281828**-0.43), rel=0.1)


class Agent:
    """A loop as small as can be: answers every call from the shelf, clears by `keep`, drops what it is told to."""

    def __init__(
        self, double: Double, folder: Path, keep: int | None = None, drop: frozenset[int] = frozenset()
    ) -> None:
        self.double, self.folder, self.keep, self.drop = double, folder, keep, drop
        self.messages: list[dict[str, Any]] = [user("begin")]
        self.replies: list[dict[str, Any]] = []

    def run(self, seed: int) -> list[tuple[str, str]]:
        """Plays to the end; returns (tool, path) of every call that was carried out."""
        done = []
        while len(self.replies) < 80:
            answer = self.double.ask(self.messages, seed=seed)
            self.replies.append(answer)
            message = answer["choices"][0]["message"]
            if "tool_calls" not in message:
                break
            if len(self.replies) - 1 in self.drop:
                continue
            (call,) = message["tool_calls"]
            arguments = json.loads(call["function"]["arguments"])
            done.append((call["function"]["name"], arguments["path"]))
            path = self.folder / arguments["path"]
            read = call["function"]["name"] == "read_file"
            result = path.read_text(encoding="utf-8") if read else "wrote it"
            # Own ids, as the harness gives them.
            call["id"] = f"call_{len(self.replies)}"
            self.messages += [message, tool(call["id"], result)]
            if self.keep is not None:
                results = [m for m in self.messages if m["role"] == "tool"]
                for old in results[: -self.keep]:
                    old["content"] = PLACEHOLDER
        return done


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    return make_simulation_task(tmp_path / "task", SHELF) / "environment" / "repo"


def test_a_run_has_the_drawn_sizes(play: Play, shelf: Path) -> None:
    double = play({"simulate": SIMULATE}, n_ctx=100_000, run_seed=5)
    agent = Agent(double, shelf)
    done = agent.run(seed=1)
    draws = [draw(Simulation(), 5, n) for n in range(12)]
    assert len(done) == 12
    for (name, path), d, reply in zip(done, draws, agent.replies, strict=False):
        assert name == ("write_file" if d.write else "read_file")
        assert reply["usage"]["completion_tokens"] == d.think + d.call
        if not d.write:
            assert abs(count((shelf / path).read_text(encoding="utf-8")) - d.result) <= 50
    reads = [path for name, path in done if name == "read_file"]
    assert len(set(reads)) == len(reads)


def test_the_draws_do_not_depend_on_what_the_policy_does(play: Play, shelf: Path) -> None:
    kept = Agent(play({"simulate": SIMULATE}, n_ctx=100_000, run_seed=5), shelf).run(seed=1)
    cleared = Agent(play({"simulate": SIMULATE}, n_ctx=100_000, run_seed=5), shelf, keep=1).run(seed=1)
    again = [call for n, call in enumerate(cleared) if call[0] == "read_file" and call in cleared[:n]]
    assert again, "nothing was read again: the draws of this seed need no older result"
    first = [call for n, call in enumerate(cleared) if not (call[0] == "read_file" and call in cleared[:n])]
    assert first == kept


def test_what_was_dropped_is_written_again(play: Play, shelf: Path) -> None:
    whole = Agent(play({"simulate": SIMULATE}, n_ctx=100_000, run_seed=5), shelf)
    dropping = Agent(play({"simulate": SIMULATE}, n_ctx=100_000, run_seed=5), shelf, drop=frozenset({2, 5}))
    assert dropping.run(seed=1) == whole.run(seed=1)
    assert len(dropping.replies) == len(whole.replies) + 2


def test_the_seed_is_the_run_s_or_the_first_request_s(play: Play, shelf: Path) -> None:
    def played(run_seed: int | None, asked: int, **more: Any) -> list[tuple[str, str]]:
        return Agent(play({"simulate": {**SIMULATE, **more}}, n_ctx=100_000, run_seed=run_seed), shelf).run(asked)

    assert played(5, 1) == played(5, 2) != played(6, 1)
    assert played(None, 1) == played(None, 1) != played(None, 2)
    assert played(5, 1, seed=9) == played(6, 2, seed=9)


def test_slips_and_early_stops(play: Play, shelf: Path) -> None:
    slips = play({"simulate": {**SIMULATE, "mistake": 1.0}}, n_ctx=100_000, run_seed=5)
    first = slips.ask([user("begin")])["choices"][0]["message"]["tool_calls"][0]["function"]
    assert first["name"] == "edit_file"
    assert json.loads(first["arguments"])["old"] not in (shelf / json.loads(first["arguments"])["path"]).read_text(
        encoding="utf-8"
    )
    stops = play({"simulate": {**SIMULATE, "stops_early": 1.0}}, n_ctx=100_000, run_seed=5)
    assert Agent(stops, shelf).run(seed=1) == []
