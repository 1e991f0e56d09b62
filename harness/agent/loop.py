"""The agent loop: ask, act, observe; at most `max_steps` requests.

Step numbers count from 0; one step is one request and what follows from it. Every end is one Stop. A tool's failure is text
to the model. What differs between agent versions is a setting (published/rules.md sections 4 to 7), never a copy of this.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.agent.guard import TestGuard
from harness.agent.notices import CUT_NOTICE, STILL_OPEN, UNREADABLE
from harness.agent.parts import Parts
from harness.agent.protocol.base import ParsedReply
from harness.agent.stop import Stop, StopReason
from harness.agent.tools.base import call
from harness.serving.outcome import Cut, Outcome, Overflow, Reply, ServerError, ToolCall


class AgentLoop:
    """One run. `parts` holds the version's switches already turned into objects; `clock` gives seconds."""

    def __init__(self, parts: Parts, clock: Callable[[], float] = time.monotonic) -> None:
        self.p = parts
        self.clock = clock
        self.guard = TestGuard(parts.workspace.root) if parts.agent.guard else None
        self.banned: str | None = None  # no_repeat: the tool that the next step may not use
        self.unusable = 0  # replies in a row that were cut or could not be read
        self.told_open_items = False

    def run(self, instruction: str) -> Stop:
        """Runs to the end. Ctrl-C is written down as a stop and goes on upwards: such a run is not counted."""
        agent, started = self.p.agent, self.clock()
        try:
            self.p.begin(instruction)
            for step in range(agent.max_steps):
                self.p.sink.step = step
                if agent.time_limit_s is not None and self.clock() - started > agent.time_limit_s:
                    text = f"stopped after {agent.time_limit_s:g} seconds"
                    return self._end(Stop(StopReason.TIME_LIMIT, step, text))
                stop = self._step(step)
                if stop is not None:
                    return self._end(stop)
            return self._end(Stop(StopReason.STEP_LIMIT, agent.max_steps, f"stopped after {agent.max_steps} steps"))
        except KeyboardInterrupt:
            self._end(Stop(StopReason.INTERRUPTED, self.p.sink.step + 1, "interrupted"))
            raise

    def _step(self, step: int) -> Stop | None:
        outcome = self._ask(step)
        match outcome:
            case Overflow():
                return self._overflowed(step, outcome)
            case ServerError():
                return self._server_error(step, outcome.status, outcome.error)
            case Cut(kind="unparsed") if self.p.agent.on_cut == "as_reply":
                return self._server_error(step, outcome.status, outcome.error or "")
            case Cut() if self.p.agent.on_cut == "drop":
                self.p.conversation.user(CUT_NOTICE.format(n_ctx=self.p.n_ctx))
                return self._not_usable(step, "cut replies")
        reply = self.p.read(outcome.message, step)
        self.p.keep(reply)
        if reply.problem is not None and isinstance(outcome, Reply):
            self.p.conversation.user(UNREADABLE.format(problem=reply.problem))
            return self._not_usable(step, "unreadable replies")
        self.unusable = 0
        if not reply.calls:
            return self._done(step, reply)
        for number, each in enumerate(reply.calls):
            self._act(number, each)
        return None

    def _ask(self, step: int) -> Outcome:
        """One request, sent again once when it was larger than the window and the agent version clears then."""
        p = self.p
        p.manage_context("before_send", None)
        outcome = p.request(step, 0, self.banned)
        if (
            isinstance(outcome, Overflow)
            and p.agent.on_overflow == "clear_and_retry"
            and p.manage_context("overflow", None)
        ):
            outcome = p.request(step, 1, self.banned)
        # Published: the check comes after every answer that tells its size, cut ones included, before it is acted on.
        if isinstance(outcome, (Reply, Cut)) and outcome.usage is not None:
            p.manage_context("after_reply", outcome.usage.total_tokens)
        return outcome

    def _act(self, number: int, each: ToolCall) -> None:
        """One call: run the tool, let the guard put tests back, look what changed, hand the text to the model."""
        p = self.p
        p.sink.call = number
        started = self.clock()
        result = call(p.tools, each.name, each.arguments)
        text = result.text
        if self.guard is not None and (restored := self.guard.check()):
            note = "\n".join(r.note for r in restored)
            text = f"{text}\n{note}"
            p.sink.emit("guard", files=[{"path": r.path, "names": list(r.names)} for r in restored], note=note)
        change = p.workspace.tree_change()  # asked after the guard: what it undid is no change
        if change is not None:
            p.evidence.saw_change()
            p.sink.emit("tree", digest=change.digest, changes=change.changes)
        ms = round((self.clock() - started) * 1000, 3)
        called = {"id": each.id, "name": each.name, "arguments": each.arguments}
        p.sink.emit("call", **called, result=text, ok=result.ok, changed=change is not None, ms=ms)
        if each.name in p.tools and p.tools[each.name].bookkeeping:
            p.sink.emit("plan", **p.plan.facts())
        p.result(each, text)
        p.sink.call = None
        if p.settings.protocol.no_repeat:
            self.banned = None if change is not None else each.name

    def _done(self, step: int, reply: ParsedReply) -> Stop | None:
        """The model says it is done: the plan and the finish gate have a say."""
        p = self.p
        text = reply.finish if reply.finish is not None else reply.content
        if p.plan.at_retry_limit:
            names = ", ".join(i.id for i in p.plan.at_retry_limit)
            return Stop(StopReason.ESCALATED, step + 1, text, f"at the retry limit: {names}")
        if p.plan.open_items and not self.told_open_items:
            self.told_open_items = True
            p.conversation.user(STILL_OPEN.format(items="\n".join(i.line() for i in p.plan.open_items)))
            return None
        verdict = p.check_finish()
        if verdict.passed:
            return Stop(StopReason.DECLARED_DONE, step + 1, f"{text}\n{verdict.last_line}".strip())
        p.conversation.user(verdict.message)
        if p.settings.protocol.no_repeat:
            self.banned = p.protocol.finish_tool
        return None

    def _not_usable(self, step: int, what: str) -> Stop | None:
        self.unusable += 1
        most = self.p.agent.max_unusable
        if most is not None and self.unusable >= most:
            return Stop(StopReason.REPLY_UNUSABLE, step + 1, f"stopped after {self.unusable} {what} in a row")
        return None

    def _overflowed(self, step: int, outcome: Overflow) -> Stop:
        if self.p.agent.on_overflow == "stop":
            return self._server_error(step, outcome.status, outcome.error)
        text = "stopped: the request is larger than the window and nothing is left to clear"
        return Stop(StopReason.CONTEXT_EXHAUSTED, step + 1, text, outcome.error, outcome.status)

    def _server_error(self, step: int, status: int | None, error: str) -> Stop:
        text = f"stopped: the server answered {status}: {error[:300]}" if status else f"stopped: {error[:300]}"
        return Stop(StopReason.SERVER_ERROR, step + 1, text, error, status)

    def _end(self, stop: Stop) -> Stop:
        self.p.sink.emit(
            "stop",
            steps=stop.steps,
            reason=stop.reason.value,
            declared_done=stop.declared_done,
            status=stop.status,
            detail=stop.detail,
            text=stop.text,
        )
        return stop
