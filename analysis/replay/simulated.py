"""Recorded runs of a simulated agent that nothing is ever cleared for: the long material of replay tests and of the benchmark.

Sizes and rates are those of the project's clearing simulation (docs/context.md): a head of 800 tokens; thinking of 100 to 800;
30 % writes of 500 to 1500 with a short answer, else reads of 100 to 2000. Tokens are those of the double's tokenizer.
"""

from __future__ import annotations

import json
import random
from typing import Any

from harness.serving.scripted import filler
from harness.serving.scripted.template import reply_text
from harness.serving.scripted.tokenizer import count

HEAD, ACK = 800, 30
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
    for name in ("read_file", "write_file")
]


def simulated_events(
    seed: int, steps: int = 30, *, scale: float = 1.0, n_ctx: int = 1 << 20, max_tokens: int | None = 2300
) -> list[dict[str, Any]]:
    """The events of one run; tokens as the server would tell them under no policy at all."""
    events: list[dict[str, Any]] = []

    def emit(event: str, **fields: Any) -> None:
        events.append({"v": 1, "i": len(events), "t": 0.0, "event": event} | fields)

    def add(message: dict[str, Any]) -> None:
        emit("message", index=0, message=message)

    emit("start", tools=TOOLS, protocol="native", n_ctx=n_ctx, max_tokens=max_tokens, seed=seed, agent="simulated")
    add({"role": "system", "content": filler.prose(HEAD // 2, f"{seed}/system")})
    add({"role": "user", "content": filler.prose(HEAD // 2, f"{seed}/task")})
    for step in range(steps):
        rng = random.Random(f"{seed}-{step}")
        write = rng.random() < 0.3
        think = _scaled(rng.randint(100, 800), scale)
        body = _scaled(rng.randint(500, 1500), scale) if write else 0
        result = ACK if write else _scaled(rng.randint(100, 2000), scale)
        name = "write_file" if write else "read_file"
        arguments: dict[str, Any] = {"path": f"notes/{step:03d}.txt"}
        if write:
            arguments["content"] = filler.prose(body, f"{seed}/{step}/body")
        call = {
            "id": f"call_{step}_0",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        thinking = filler.prose(think, f"{seed}/{step}/think")
        written = count(reply_text(thinking, "", [(name, call["function"]["arguments"])])) + 1
        emit("request", step=step, attempt=0, tag="agent", n_messages=2 + 2 * step, tools=True, params={}, sha256="")
        emit(
            "response",
            step=step,
            attempt=0,
            tag="agent",
            outcome="reply",
            dropped=False,
            usage=None,
            timings={"cache_n": None, "prompt_n": None, "predicted_n": written},
        )
        add({"role": "assistant", "content": "", "reasoning_content": thinking, "tool_calls": [call]})
        text = filler.prose(result, f"{seed}/{step}/result")
        emit(
            "call",
            step=step,
            call=0,
            id=call["id"],
            name=name,
            arguments=call["function"]["arguments"],
            result=text,
            ok=True,
        )
        add({"role": "tool", "tool_call_id": call["id"], "content": text})
    emit("stop", step=steps, steps=steps, reason="step_limit")
    return events


def _scaled(tokens: int, scale: float) -> int:
    return max(20, int(tokens * scale))
