"""Every failure a scenario may ask for, by name, in llama-server's words of several builds.

stage: `before` the request reaches the slot; `refused` by the slot before anything is processed; `running` while the reply is
written; `after` the whole reply was written (its timings stand in the log). transport: what happens to the connection instead
of an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.serving.scripted.errors import Refused

Stage = Literal["before", "refused", "running", "after"]
Transport = Literal["answer", "closed", "reset", "gone", "half_body", "not_json"]


@dataclass(frozen=True)
class Facts:
    """Numbers a message may name: prompt and window in tokens, and the generated text."""

    prompt_tokens: int = 0
    n_ctx: int = 0
    text: str = ""


@dataclass(frozen=True)
class Failure:
    stage: Stage
    error: Callable[[Facts], Refused] | None = None
    transport: Transport = "answer"


def overflow_new(facts: Facts) -> Refused:
    """b7481 on."""
    text = (
        f"request ({facts.prompt_tokens} tokens) exceeds the available context size ({facts.n_ctx} tokens), "
        "try increasing it"
    )
    return Refused(400, text, "exceed_context_size_error", n_prompt_tokens=facts.prompt_tokens, n_ctx=facts.n_ctx)


def overflow_middle(facts: Facts) -> Refused:
    """b6728 to b7480."""
    text = "the request exceeds the available context size, try increasing it"
    return Refused(400, text, "exceed_context_size_error", n_prompt_tokens=facts.prompt_tokens, n_ctx=facts.n_ctx)


def overflow_old(facts: Facts) -> Refused:
    """b3812 to b6379."""
    return Refused(
        400, "the request exceeds the available context size. try increasing the context size or enable context shift"
    )


OVERFLOW = {"new": overflow_new, "middle": overflow_middle, "old": overflow_old}


def unparsed_old(facts: Facts) -> Refused:
    """b8227 to b9655: the position where parsing stopped, and the rest."""
    position = max(facts.text.rfind("<tool_call>"), 0)
    return Refused(500, f"Failed to parse input at pos {position}: {facts.text[position:]}")


def unparsed_new(facts: Facts) -> Refused:
    """b9656 on."""
    return Refused(500, "The model produced output that does not match the expected peg-native format")


def _bad_history(facts: Facts) -> Refused:
    return Refused(
        500,
        "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 1: "
        "syntax error while parsing value - unexpected end of input",
    )


FAILURES: dict[str, Failure] = {
    "overflow": Failure("refused", overflow_new),
    "overflow_middle": Failure("refused", overflow_middle),
    "overflow_old": Failure("refused", overflow_old),
    "unparsed_old": Failure("after", unparsed_old),
    "unparsed_new": Failure("after", unparsed_new),
    "context_exceeded": Failure("running", lambda facts: Refused(500, "Context size has been exceeded.")),
    "context_shift_disabled": Failure("running", lambda facts: Refused(500, "context shift is disabled")),
    "bad_history": Failure("before", _bad_history),
    "server_error": Failure("running", lambda facts: Refused(500, "Compute error.")),
    "loading": Failure("before", lambda facts: Refused(503, "Loading model")),
    "unauthorized": Failure("before", lambda facts: Refused(401, "Invalid API Key")),
    "closed": Failure("before", transport="closed"),
    "reset": Failure("before", transport="reset"),
    "gone": Failure("before", transport="gone"),
    "half_body": Failure("after", transport="half_body"),
    "not_json": Failure("after", transport="not_json"),
}
