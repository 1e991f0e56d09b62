"""What the loop is made of: one run's settings turned into objects, and the small acts that write events about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.agent.context.base import ContextPolicy, ContextState, When
from harness.agent.conversation import Conversation
from harness.agent.finish import PYTEST, Evidence, FinishGate, GateVerdict
from harness.agent.planning import Plan
from harness.agent.prompts import prompt
from harness.agent.protocol.base import CallProtocol, ParsedReply
from harness.agent.seeds import derive_seed
from harness.agent.tools.base import Tool, ToolError, parse_arguments
from harness.agent.tools.files import read_text, visible_files
from harness.agent.workspace import Workspace
from harness.record.conversation import Message
from harness.record.events import EventSink
from harness.serving.client import encode
from harness.serving.outcome import AssistantMessage, ChatRequest, Cut, ModelClient, Outcome, Overflow, ServerError
from harness.settings import AgentSettings, RunSettings

FILE_IN_MESSAGE_CHARS = 20_000


class StepSink:
    """Adds the current step (and call) to every event, so that no tool needs to know where it is."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self.step = 0
        self.call: int | None = None

    def emit(self, event: str, **fields: Any) -> None:
        place: dict[str, Any] = {"step": self.step}
        if self.call is not None or event in ("command", "approval"):
            place["call"] = self.call
        self._sink.emit(event, **(place | fields))


@dataclass
class Parts:
    """Everything one run of the loop works with. n_ctx: the window read back from the server, in tokens."""

    settings: RunSettings
    model: ModelClient
    workspace: Workspace
    sink: StepSink
    conversation: Conversation
    protocol: CallProtocol
    tools: dict[str, Tool]
    policy: ContextPolicy
    gate: FinishGate
    evidence: Evidence
    plan: Plan
    n_ctx: int
    count: Callable[[Sequence[Message]], int] | None = None

    @property
    def agent(self) -> AgentSettings:
        return self.settings.agent

    def begin(self, instruction: str) -> None:
        """The system prompt and the task; the first two messages, which nothing ever changes."""
        tools = list(self.tools.values())
        system = "\n\n".join(t for t in (prompt(self.agent.prompt), self.protocol.instructions(tools)) if t)
        self.sink.emit(
            "start",
            instruction=instruction,
            system=system,
            tools=[t.declaration() for t in tools],
            protocol=self.protocol.name,
            n_ctx=self.n_ctx,
            max_tokens=self.settings.server.max_tokens,
            seed=self.settings.seed,
            agent=self.agent.name,
        )
        self.conversation.system(system)
        files = self._files() if self.agent.files_in_first_message else ""
        self.conversation.user(instruction + files)

    def request(self, step: int, attempt: int, banned: str | None) -> Outcome:
        """Sends the conversation as it stands; both sides of it are events."""
        parts = self.protocol.parts(list(self.tools.values()), () if banned is None else (banned,))
        request = ChatRequest(
            messages=self.protocol.wire(self.conversation.messages),
            seed=derive_seed(self.settings.seed, step),
            temperature=self.agent.temperature,
            tools=parts.tools,
            max_tokens=self.settings.server.max_tokens,
            response_format=parts.response_format,
        )
        body = request.body()
        self.sink.emit(
            "request",
            attempt=attempt,
            tag=request.tag,
            n_messages=len(self.conversation.messages),
            params={k: v for k, v in body.items() if k not in ("messages", "tools")},
            tools=bool(parts.tools),
            sha256=hashlib.sha256(encode(body)).hexdigest(),
        )
        outcome = _with_own_ids(step, self.model.chat(request))
        dropped = isinstance(outcome, Cut) and self.agent.on_cut == "drop"
        self.sink.emit("response", attempt=attempt, tag=request.tag, **describe(outcome), dropped=dropped)
        return outcome

    def read(self, message: AssistantMessage | None, step: int) -> ParsedReply:
        """What a reply says; its calls get ids of ours, because a server's are random and would differ between equal runs."""
        reply = self.protocol.read(message or AssistantMessage())
        calls = tuple(replace(c, id=f"call_{step}_{i}") for i, c in enumerate(reply.calls))
        return replace(reply, calls=calls)

    def keep(self, reply: ParsedReply) -> None:
        """Appends the reply to the conversation.

        A history that holds call arguments which are not JSON gets a 500 from llama-server on every later request. The published
        versions run into that; own versions store such arguments wrapped into an object.
        """
        if not self.agent.keep_bad_arguments:
            calls = tuple(
                c if parse_arguments(c.arguments) is not None else replace(c, arguments=_wrapped(c.arguments))
                for c in reply.calls
            )
            reply = replace(reply, calls=calls)
        self.conversation.append(reply.stored())

    def manage_context(self, when: When, total_tokens: int | None) -> bool:
        """Lets the policy decide and takes its change over; True when at least one message changed."""
        before = self.conversation.messages
        state = ContextState(before, self.n_ctx, self.settings.server.max_tokens, total_tokens, self.count)
        change = self.policy.decide(when, state)
        if change is None:
            return False
        self.conversation.replace(
            change.messages,
            policy=self.policy.name,
            reason=change.reason,
            when=when,
            tokens=total_tokens,
            cleared=change.cleared,
            freed_chars=_chars(before) - _chars(change.messages),
            freed_tokens=None if self.count is None else self.count(before) - self.count(change.messages),
            decision=change.decision,
        )
        return change.cleared > 0

    def check_finish(self) -> GateVerdict:
        """Asks the finish gate; its pytest run and its verdict are events."""
        verdict = self.gate.check(self.workspace, self.evidence)
        ran = verdict.result
        if ran is not None:
            self.sink.emit(
                "command",
                purpose="finish_check",
                command=PYTEST,
                exit_code=ran.exit_code,
                timed_out=ran.timed_out,
                limit=ran.limit,
                ms=ran.ms,
                output_chars=ran.output_chars,
                truncated=ran.truncated,
            )
        self.sink.emit(
            "finish_check",
            gate=self.gate.name,
            passed=verdict.passed,
            exit_code=None if ran is None else ran.exit_code,
            last_line=verdict.last_line,
            output=verdict.output,
            reasons=list(verdict.reasons),
            ms=None if ran is None else ran.ms,
        )
        return verdict

    def _files(self) -> str:
        """The repo's text files, for agent versions that show them in the first message."""
        shown = []
        for path in visible_files(self.workspace.root):
            try:
                text = read_text(self.workspace, path)
            except ToolError:
                continue
            if len(text) <= FILE_IN_MESSAGE_CHARS:
                shown.append(f"{path}:\n```\n{text}\n```")
        return "\n\nThe files of the repo:\n\n" + "\n\n".join(shown)


def describe(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the fields of a `response` event."""
    kind = outcome.kind if isinstance(outcome, (Cut, ServerError)) else None
    name = {"Reply": "reply", "Cut": "cut", "Overflow": "overflow", "ServerError": "server_error"}[
        type(outcome).__name__
    ]
    fields: dict[str, Any] = {"outcome": name, "kind": kind, "status": outcome.status, "ms": round(outcome.ms, 3)}
    if isinstance(outcome, (Overflow, ServerError)):
        sizes = (outcome.prompt_tokens, outcome.n_ctx) if isinstance(outcome, Overflow) else (None, None)
        return (
            fields
            | dict.fromkeys(("finish_reason", "message", "usage", "timings"))
            | {
                "error": outcome.error,
                "n_prompt": sizes[0],
                "n_ctx": sizes[1],
            }
        )
    return fields | {
        "finish_reason": outcome.finish_reason,
        "message": None if outcome.message is None else asdict(outcome.message),
        "usage": None if outcome.usage is None else asdict(outcome.usage),
        "timings": None if outcome.timings is None else asdict(outcome.timings),
        "error": outcome.error if isinstance(outcome, Cut) else None,
        "n_prompt": None,
        "n_ctx": None,
    }


def _with_own_ids(step: int, outcome: Outcome) -> Outcome:
    """The outcome with the server's random call ids replaced by ours, which are the same in every equal run."""
    if isinstance(outcome, (Overflow, ServerError)) or outcome.message is None:
        return outcome
    calls = tuple(replace(c, id=f"call_{step}_{i}") for i, c in enumerate(outcome.message.tool_calls))
    return replace(outcome, message=replace(outcome.message, tool_calls=calls))


def _wrapped(raw: str) -> str:
    return json.dumps({"not_json": raw[:200]}, ensure_ascii=False)


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(json.dumps(m, ensure_ascii=False)) for m in messages)
