"""Server check: replayed prompts against a real server, one generated token each; its `prompt_n` beside the prediction.

What a replay predicts for a policy is sent as it is: every prompt of one run under that policy, in order, to one slot. One token
is asked for, so the slot holds the prompt alone (the one sampled token never enters it), and the next prompt's reuse follows
from the two prompts. That is another number than in the replay itself, where replies are in the slot, and exact for the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from analysis.replay.policies import NamedPolicy
from analysis.replay.prompts import Prompts
from analysis.replay.replay import RecordedRun
from analysis.replay.slot import Slot
from harness.record.conversation import Message
from harness.serving.outcome import ChatRequest, Cut, Overflow, Reply
from harness.serving.running import RunningServer


@dataclass(frozen=True)
class Checked:
    """One prompt. predicted, told: tokens evaluated, as predicted and as the server's prompt_n; told None without an answer."""

    run: str
    policy: str
    number: int
    prompt: int
    told_prompt: int | None
    predicted: int
    told: int | None
    problem: str | None = None

    @property
    def agrees(self) -> bool:
        return self.predicted == self.told and self.prompt == self.told_prompt


def sent_prompts(run: RecordedRun, policy: NamedPolicy, n_ctx: int) -> list[list[Message]]:
    """The message lists that this run would send under the policy, those of its summaries included."""
    found: list[list[Message]] = []
    run.through(policy, n_ctx=n_ctx, on_request=lambda messages: found.append(list(messages)))
    return found


def check(
    run: RecordedRun,
    policy: NamedPolicy,
    server: RunningServer,
    *,
    most: int | None = None,
    progress: Callable[[Checked], None] | None = None,
) -> list[Checked]:
    """Sends a run's prompts under a policy, at most `most` of them, to a server whose slot is emptied first.

    A server that can't empty its slot must be cold; the first prompt then shows whether it was.
    """
    assert server.n_ctx is not None
    server.erase()
    out = []
    for found in _sent(run, policy, server, sent_prompts(run, policy, server.n_ctx)[:most]):
        out.append(found)
        if progress is not None:
            progress(found)
    return out


def _sent(
    run: RecordedRun, policy: NamedPolicy, server: RunningServer, lists: Sequence[list[Message]]
) -> Iterator[Checked]:
    prompts: Prompts = run.prompts
    slot = Slot()
    for number, messages in enumerate(lists):
        ids = prompts.ids(messages)
        predicted = len(ids) - slot.take(ids)
        request = ChatRequest(
            prompts.wire(messages), 0, 0.0, tools=prompts.tools, max_tokens=1, extra=server.request_extra
        )
        outcome = server.client().chat(request)
        told_prompt = told = None
        problem = None
        if isinstance(outcome, (Reply, Cut)) and outcome.timings is not None and outcome.timings.prompt_n is not None:
            told = outcome.timings.prompt_n
            told_prompt = None if outcome.timings.cache_n is None else told + outcome.timings.cache_n
        elif isinstance(outcome, Overflow):
            problem = f"larger than the window: {outcome.error}"
        else:
            problem = getattr(outcome, "error", None) or "the server told no timings"
        yield Checked(run.material.run, policy.name, number, len(ids), told_prompt, predicted, told, problem)
