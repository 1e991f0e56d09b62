"""A slot with a prefix cache over a toy template and tokenizer: true token arithmetic without a model.

Tokens are special marks, words, blanks and single other characters. Like llama.cpp's: reuse is the longest common prefix of
the new prompt and what the slot holds, at most prompt - 1; the last sampled token never enters the cache.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

PIECES = re.compile(r"<\|\w+\|>|\w+|\s+|[^\w\s]")


def render(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None) -> str:
    """A chat-ML template that writes calls as JSON and drops thinking from all but the last turn."""
    out = []
    if tools:
        out.append("<|im_start|>system\ntools: " + json.dumps(tools) + "<|im_end|>\n")
    last_user = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    for i, message in enumerate(messages):
        out.append(f"<|im_start|>{message['role']}\n{body(message, thinking=i > last_user)}<|im_end|>\n")
    return "".join(out) + "<|im_start|>assistant\n"


def body(message: dict[str, Any], *, thinking: bool) -> str:
    """What a message's turn holds; for a reply it is also exactly what the model generated."""
    text = message.get("content") or ""
    if thinking and message.get("reasoning_content"):
        text = f"<|think|>{message['reasoning_content']}<|/think|>{text}"
    for call in message.get("tool_calls") or ():
        function = call["function"]
        text += f"<|call|>{function['name']} {function['arguments']}<|end|>"
    return text


def tokenize(text: str, *, add_special: bool = False) -> list[str]:
    return PIECES.findall(text)


@dataclass
class ToySlot:
    n_ctx: int
    held: list[str] = field(default_factory=list)

    def evaluate(self, prompt: list[str]) -> tuple[int, int]:
        """(reused, evaluated) of a prompt; the slot holds it afterwards."""
        common = 0
        for a, b in zip(prompt, self.held, strict=False):
            if a != b:
                break
            common += 1
        reused = min(common, len(prompt) - 1)
        self.held = list(prompt)
        return reused, len(prompt) - reused

    def generate(self, tokens: list[str]) -> list[str]:
        """Takes generated tokens into the cache, as many as the window allows; returns those that were generated."""
        room = self.n_ctx - len(self.held)
        generated = tokens[:room]
        self.held += generated[:-1]
        return generated
