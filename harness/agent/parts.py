"""What the loop is made of: one run's settings turned into objects, and the small acts that write events about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.agent.context.base import ContextPolicy, ContextState, When
from harness.agent.context.cap import READ_MORE, CappedResults
from harness.agent.context.history import ClearHistory
from harness.agent.conversation import Conversation
from harness.agent.exchange import describe, with_own_ids
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
from harness.serving.outcome import (
    AssistantMessage,
    ChatRequest,
    Cut,
    ModelClient,
    Outcome,
    Reply,
    ToolCall,
)
from harness.settings import AgentSettings, RunSettings

FILE_IN_MESSAGE_CHARS = 20_000
CountSent = Callable[[list[Message], list[dict[str, Any]] | None], int | None]


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
    """Everything one run of the loop works with. n_ctx: the window read back from the server, in tokens.

    reported: what the server said of its last request, prompt and reply in tokens, and how many messages that covers; None
    where it said nothing or the list was changed since.
    """

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
    count_sent: CountSent | None = None
    capped: CappedResults | None = None
    history: ClearHistory = field(default_factory=ClearHistory)
    reported: tuple[int, int] | None = None
    request_extra: dict[str, Any] = field(default_factory=dict)

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
            mount=self.workspace.mount,
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
            extra=self.request_extra,
        )
        outcome = self._exchange(request, attempt, len(self.conversation.messages))
        dropped = isinstance(outcome, Cut) and self.agent.on_cut == "drop"
        self._report(outcome, dropped)
        return outcome

    def summarise(self, messages: list[Message], max_tokens: int) -> str | None:
        """Asks the same model about the conversation (`messages`: the list and a question at its end); None without an answer."""
        request = ChatRequest(
            messages=self.protocol.wire(messages),
            seed=derive_seed(self.settings.seed, self.sink.step),
            temperature=self.agent.temperature,
            tools=self.protocol.parts(list(self.tools.values()), ()).tools,
            max_tokens=max_tokens,
            tag="summary",
            extra=self.request_extra,
        )
        outcome = self._exchange(request, 0, len(messages), messages=messages)
        if not isinstance(outcome, (Reply, Cut)) or outcome.message is None:
            return None
        return outcome.message.content

    def _exchange(self, request: ChatRequest, attempt: int, n_messages: int, **more: Any) -> Outcome:
        """Sends one request; both sides of it are events. more: further fields of the request event."""
        body = request.body()
        self.sink.emit(
            "request",
            attempt=attempt,
            tag=request.tag,
            n_messages=n_messages,
            params={k: v for k, v in body.items() if k not in ("messages", "tools")},
            tools=bool(request.tools),
            sha256=hashlib.sha256(encode(body)).hexdigest(),
            **more,
        )
        outcome = with_own_ids(self.sink.step, self.model.chat(request))
        dropped = request.tag == "agent" and isinstance(outcome, Cut) and self.agent.on_cut == "drop"
        self.sink.emit("response", attempt=attempt, tag=request.tag, **describe(outcome), dropped=dropped)
        return outcome

    def _report(self, outcome: Outcome, dropped: bool) -> None:
        """Remembers the size the server told, which a kept reply's message adds one to the covered messages of."""
        if not isinstance(outcome, (Reply, Cut)):
            return
        self.history.answered()
        usage = outcome.usage
        tokens = None if usage is None else usage.prompt_tokens if dropped else usage.total_tokens
        covered = len(self.conversation.messages) + (not dropped)
        self.reported = None if tokens is None else (tokens, covered)

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
        state = self._context_state(total_tokens)
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
            freed_tokens=self._freed(before, change.messages),
            decision=change.decision,
        )
        if change.cleared:
            self.history.cleared()
            self.reported = None
        return change.cleared > 0

    def _context_state(self, total_tokens: int | None) -> ContextState:
        """total_tokens: as just reported by a reply; None before sending, where the last report still holds for its part."""
        messages, appended = self.conversation.messages, 0
        if total_tokens is None and self.reported is not None:
            total_tokens, covered = self.reported
            appended = max(0, len(messages) - covered)
        return ContextState(
            messages=messages,
            n_ctx=self.n_ctx,
            max_tokens=self.settings.server.max_tokens,
            total_tokens=total_tokens,
            count=None if self.count_sent is None else self._count,
            appended=appended,
            since_clear=self.history.since_clear,
            thrashes=self.history.thrashes,
            summarise=self.summarise,
        )

    def _freed(self, before: Sequence[Message], after: Sequence[Message]) -> int | None:
        old, new = self._count(before), self._count(after)
        return None if old is None or new is None else old - new

    def _count(self, messages: Sequence[Message]) -> int | None:
        """Tokens of the list as it would be sent."""
        if self.count_sent is None:
            return None
        tools = self.protocol.parts(list(self.tools.values()), ()).tools
        return self.count_sent(self.protocol.wire(messages), tools)

    def result(self, each: ToolCall, text: str) -> None:
        """Appends a call's result, capped where the settings say so; what is read on is not capped a second time."""
        if self.capped is not None and each.name != READ_MORE:
            text = self.capped.born(each.id, text)
        self.conversation.tool(each.id, text)

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


def _wrapped(raw: str) -> str:
    return json.dumps({"not_json": raw[:200]}, ensure_ascii=False)


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(json.dumps(m, ensure_ascii=False)) for m in messages)
