"""Puts one agent together from its settings and runs it: the agent room's one entrance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.agent.approval.advice import Decider
from harness.agent.approval.answer import answerer
from harness.agent.approval.registry import rule
from harness.agent.approver import RuleApprover
from harness.agent.context import check_context, context_policy
from harness.agent.context.cap import READ_MORE, CappedResults
from harness.agent.conversation import Conversation
from harness.agent.finish import Evidence, finish_gate, test_names
from harness.agent.loop import AgentLoop
from harness.agent.parts import CountSent, Parts, StepSink
from harness.agent.planning import Plan
from harness.agent.prompts import prompt
from harness.agent.protocol import protocol
from harness.agent.stop import Stop
from harness.agent.tools.box import toolbox
from harness.agent.tools.shell import Shell
from harness.agent.workspace import Workspace
from harness.record.events import EventSink
from harness.serving.outcome import ModelClient
from harness.settings import RunSettings, SettingsError


def check_names(settings: RunSettings) -> None:
    """Raises SettingsError, before anything is started, for a prompt, rule or policy that does not exist or can't hold."""
    prompt(settings.agent.prompt)
    try:
        rule(settings.approval.rule)
    except ValueError as e:
        raise SettingsError(f"approval.rule: {e}") from e
    server = settings.server
    check_context(settings.context, n_ctx=server.n_ctx, max_tokens=server.max_tokens, cache_reuse=server.cache_reuse)


def run_agent(
    settings: RunSettings,
    model: ModelClient,
    workspace: Workspace,
    sink: EventSink,
    *,
    instruction: str,
    n_ctx: int,
    wants_tests: bool = False,
    count: CountSent | None = None,
    probe: Mapping[str, Any] | None = None,
    request_extra: Mapping[str, Any] | None = None,
) -> Stop:
    """Runs one agent on one copy and returns how it ended.

    Args:
        instruction: the task's text, the first user message.
        n_ctx: the window in tokens, as read back from the server.
        wants_tests: the task asks for new tests (the evidence gate then looks for them).
        count: tokens of messages as they are sent, with their tools (harness.serving.counting); None when nobody can tell.
        probe: what is known of the server; the kv_shift policy needs its `moved_reuse` to be true.
        request_extra: what every request body must carry besides, as the server wants it.

    Raises:
        SettingsError: a tool, prompt, rule or policy that does not exist.
        KeyboardInterrupt: after the stop has been written down.
    """
    steps = StepSink(sink)
    evidence, plan = Evidence(), Plan()
    decider = None
    if settings.approval.advice:
        decider = Decider(settings.approval.advice_url, wording_name=settings.approval.advice_wording)
    approver = RuleApprover(
        rule(settings.approval.rule, root=workspace.mount, host=workspace.root),
        answerer(settings.approval.answer),
        settings.approval.answer,
        steps,
        decider,
        workspace.mount,
    )
    agent = settings.agent
    shell = Shell(workspace, approver, steps, agent.command_timeout_s, agent.command_output_chars, evidence.saw_command)

    def on_same(path: str) -> None:
        steps.emit("note", kind="same_content", text=path)

    tools = toolbox(agent, workspace, shell, plan, steps, on_same)
    cap = settings.context.result_cap
    capped = None if cap is None else CappedResults(cap)
    if capped is not None:
        tools[READ_MORE] = capped.tool()
    parts = Parts(
        settings=settings,
        model=model,
        workspace=workspace,
        sink=steps,
        conversation=Conversation(steps),
        protocol=protocol(settings.protocol.name),
        tools=tools,
        policy=context_policy(settings.context, cache_reuse=settings.server.cache_reuse, probe=probe),
        gate=finish_gate(settings.finish, test_names(workspace), wants_tests),
        evidence=evidence,
        plan=plan,
        n_ctx=n_ctx,
        count_sent=count,
        capped=capped,
        request_extra=dict(request_extra or {}),
    )
    return AgentLoop(parts).run(instruction)
