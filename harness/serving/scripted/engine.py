"""The server under the HTTP: one slot, its accounting, the scenario that is played, and the log.

A request that does not fit the window, or whose history can't be rendered, is refused as llama-server refuses it and uses up no
step of the scenario. Requests of the harness that are not the agent's (told by the header X-Called-Shot-Tag) are answered with
filler and use up no step either. Erasing the slot starts the scenario again: a run begins with an erased slot, so what was
asked before it leaves no trace.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.serving.errors import ServingError
from harness.serving.scripted import documents, filler, log, template
from harness.serving.scripted.errors import Refused
from harness.serving.scripted.failures import FAILURES, OVERFLOW, Facts, Failure, Transport
from harness.serving.scripted.log import Clock, ServerLog
from harness.serving.scripted.parsing import Parsed, parse
from harness.serving.scripted.player import Player
from harness.serving.scripted.reply import Draft, of_size, past
from harness.serving.scripted.request import view
from harness.serving.scripted.scenario import Scenario, Step
from harness.serving.scripted.slot import Slot
from harness.serving.scripted.timing import RequestTimes
from harness.serving.scripted.tokenizer import EOS, detokenize, tokenize

_SIDE_TOKENS = {"summary": 400}


@dataclass(frozen=True)
class Answer:
    """document: the body; transport: what is done with it; latency_s: seconds to wait first."""

    document: Any
    transport: Transport = "answer"
    latency_s: float = 0.0


class Engine:
    """Answers requests one after the other, from whatever thread they come."""

    def __init__(
        self, scenario: Scenario, n_ctx: int, *, log_path: Path | None = None, url: str = "", seed: int | None = None
    ) -> None:
        self.scenario = scenario
        self.n_ctx = n_ctx
        self.model = f"scripted/{scenario.name}"
        self._clock = Clock()
        self._log = ServerLog(log_path, self._clock)
        self._slot = Slot(n_ctx, self._log, self._clock)
        self._player = Player(scenario, seed)
        self._lock = threading.Lock()
        self._requests = 0
        self._replies = 0
        self._read: frozenset[str] = frozenset()
        keeps = scenario.behaviour.keep_thinking
        log.started(self._log, build=documents.BUILD, model=self.model, n_ctx=n_ctx, url=url, keeps_thinking=keeps)

    def close(self) -> None:
        with self._lock:
            self._log.close()

    def check_key(self, given: str | None) -> None:
        """Raises Refused (401) when the scenario asks for a key and this is not it."""
        key = self.scenario.behaviour.api_key
        if key is not None and given != key:
            self._log.server("operator()", "unauthorized: Invalid API Key", "W")
            raise Refused(401, "Invalid API Key")

    def chat(self, body: Any, tag: str = "agent") -> Answer:
        """POST /v1/chat/completions; raises Refused for an error answer."""
        with self._lock:
            return self._chat(body, tag)

    def apply_template(self, body: Any) -> dict[str, Any]:
        """POST /apply-template; raises Refused."""
        with self._lock:
            return {"prompt": self._prompt(body)}

    def decide(self, body: Any) -> dict[str, Any]:
        """POST /v1/systemone; raises Refused (501 without scripted decisions)."""
        with self._lock:
            if self.scenario.decisions is None:
                raise Refused(501, "This model is not a decision model")
            try:
                return self.scenario.decisions.answer(body)
            except Refused as e:
                raise self._exception(e) from e

    def slots(self) -> list[dict[str, Any]]:
        """GET /slots."""
        with self._lock:
            self._slot.take_number()
            self._log.server("update_slots", "all slots are idle")
            slot = self._slot
            return documents.slots(self.n_ctx, slot.last_task, len(slot.tokens), slot.last_params)

    def erase(self, slot: int) -> dict[str, Any]:
        """POST /slots/N?action=erase: empties the slot and starts the scenario again."""
        with self._lock:
            erased = self._slot.erase()
            self._player.rewind()
            self._requests, self._read = 0, frozenset()
            return {"id_slot": slot, "n_erased": erased}

    def models(self) -> dict[str, Any]:
        """GET /v1/models."""
        return documents.models(self.model, self.n_ctx, decides=self.scenario.decisions is not None)

    def malformed(self, text: str, error: ValueError) -> Refused:
        """The error for a body that is not JSON, logged."""
        with self._lock:
            return self._exception(Refused(400, template.parse_error(text, error)))

    def _chat(self, body: Any, tag: str) -> Answer:
        prompt = tokenize(self._prompt(body))
        limit = _limit(body)
        self._log.server("server_stream_session", "conv_id= (empty=1)")
        if len(prompt) >= self.n_ctx:
            overflow = OVERFLOW[self.scenario.behaviour.overflow]
            raise self._refused(body, limit, prompt, overflow(Facts(len(prompt), self.n_ctx)))
        step, draft = self._next(body, prompt, tag)
        try:
            return self._play(body, limit, prompt, step, draft)
        except Refused as e:
            e.latency_s = step.latency_s
            raise

    def _play(self, body: dict[str, Any], limit: int, prompt: list[int], step: Step, draft: Draft) -> Answer:
        """One step: its failure at its stage, or its reply."""
        failure = FAILURES[step.fail] if step.fail else Failure("after")
        error = failure.error
        if failure.stage == "before":
            if error:
                raise self._exception(error(Facts(len(prompt), self.n_ctx)))
            return Answer(None, failure.transport, step.latency_s)
        if error and failure.stage == "refused":
            raise self._refused(body, limit, prompt, error(Facts(step.prompt_tokens or self.n_ctx + 1, self.n_ctx)))
        if error and failure.stage == "running":
            raise self._refused(body, limit, prompt, error(Facts(len(prompt), self.n_ctx)), evaluate=True)
        parsed, text, finish, times = self._write(body, limit, prompt, step, draft)
        if error is None and finish == "length" and parsed.calls and self.scenario.behaviour.cut_call != "length":
            error = FAILURES[self.scenario.behaviour.cut_call].error
        if error:
            self._log.server("stop", f"cancel task, id_task = {self._slot.last_task}", "W")
            self._log.server("update_slots", "all slots are idle")
            raise self._exception(error(Facts(len(prompt), self.n_ctx, text)))
        document = documents.completion(self._replies, self.model, parsed, finish, times, self._clock.now)
        self._replies += 1
        return Answer(document, failure.transport, step.latency_s)

    def _prompt(self, body: Any) -> str:
        behaviour = self.scenario.behaviour
        try:
            if not isinstance(body, dict):
                raise Refused(400, "'messages' is required")
            return template.render(body, keep_thinking=behaviour.keep_thinking, check_arguments=behaviour.check_history)
        except Refused as e:
            raise self._exception(e) from e

    def _next(self, body: dict[str, Any], prompt: list[int], tag: str) -> tuple[Step, Draft]:
        if tag != "agent":
            return Step(), Draft(say=filler.prose(_SIDE_TOKENS.get(tag, 8), tag))
        seen = view(body, self._requests, len(prompt), self.n_ctx, self._read)
        self._requests += 1
        self._read = seen.read_before
        try:
            return self._player.next(seen)
        except ServingError as e:
            raise self._exception(Refused(500, str(e))) from e

    def _write(
        self, body: dict[str, Any], limit: int, prompt: list[int], step: Step, draft: Draft
    ) -> tuple[Parsed, str, str, RequestTimes]:
        """Generates the reply within window and limit; returns its parts, its text, the finish reason and its times."""
        room = self.n_ctx - len(prompt)
        try:
            if step.fill == "window":
                draft = past(draft, room, step.fill_in)
            elif step.generated is not None:
                draft = of_size(draft, step.generated, step.fill_in)
        except ServingError as e:
            raise self._exception(Refused(500, str(e))) from e
        whole = [*tokenize(draft.text()), EOS]
        generated = whole[: min(room, max(limit, 1) if limit >= 0 else room)]
        ended = len(generated) == len(whole)
        text = detokenize(generated[:-1] if ended else generated)
        behaviour = self.scenario.behaviour
        task = self._launch(body, limit, prompt)
        reused = self._slot.evaluate(task, prompt, behaviour.prompt_rate)
        times = RequestTimes(reused, len(prompt) - reused, len(generated), behaviour.prompt_rate, behaviour.write_rate)
        if body.get("tools") and text.startswith("<think>"):
            self._log.common("common_reasoning_budget", "activated, budget=2147483647 tokens")
            if "</think>" in text:
                self._log.common("common_reasoning_budget", "deactivated (natural end)")
        self._slot.write(task, generated, times)
        parsed = parse(text, tools=bool(body.get("tools")), ended=ended)
        finish = ("tool_calls" if parsed.calls else "stop") if ended else "length"
        return parsed, text, finish, times

    def _refused(
        self, body: dict[str, Any], limit: int, prompt: list[int], error: Refused, *, evaluate: bool = False
    ) -> Refused:
        """The slot's refusal, with its log lines. evaluate: the prompt was read before it failed."""
        task = self._launch(body, limit, prompt)
        if evaluate:
            self._slot.evaluate(task, prompt, self.scenario.behaviour.prompt_rate)
        self._slot.refuse(task, error)
        return error

    def _launch(self, body: dict[str, Any], limit: int, prompt: list[int]) -> int:
        self._slot.last_params = documents.params(body, limit)
        return self._slot.launch(prompt, self._slot.last_params["temperature"])

    def _exception(self, error: Refused) -> Refused:
        text = json.dumps(error.body(), ensure_ascii=False, separators=(",", ":"))
        self._log.server("operator()", f"got exception: {text}", "W")
        return error


def _limit(body: dict[str, Any]) -> int:
    """The reply limit in tokens, -1 for none; 0 still gives one token, as in llama-server."""
    for key in ("max_tokens", "max_completion_tokens", "n_predict"):
        if isinstance(body.get(key), int):
            return max(body[key], -1)
    return -1
