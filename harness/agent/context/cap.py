"""A cap on a tool result at its birth: the cheapest lever of all, because what never was in the prompt is never cleared.

The model gets the beginning and the end and is told how to read on: `read_more` is a tool of its own, there only where a cap
is set, so that the other agent versions keep their tools.
"""

from __future__ import annotations

from harness.agent.tools.base import Tool, ToolError

TAIL_SHARE = 0.25
READ_MORE = "read_more"


def capped(text: str, call_id: str, most: int) -> str:
    """The text as it is when it has at most `most` characters, else its beginning, a hint, and its end.

    The hint itself comes on top of `most`.
    """
    if len(text) <= most:
        return text
    tail = int(most * TAIL_SHARE)
    head = most - tail
    hint = f"[{len(text) - most} characters left out here; {_shows(call_id, head)}]"
    return f"{text[:head]}\n{hint}\n{text[len(text) - tail :]}"


def _shows(call_id: str, start: int) -> str:
    """The whole call, because a policy may have taken out the hint before this one."""
    return f'{READ_MORE}(result="{call_id}", start={start}) shows them'


class CappedResults:
    """The whole texts of a run's capped results. most: characters of a result that the model sees at once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._whole: dict[str, str] = {}

    def born(self, call_id: str, text: str) -> str:
        """The text the model will see."""
        shown = capped(text, call_id, self.most)
        if shown is not text:
            self._whole[call_id] = text
        return shown

    def tool(self) -> Tool:
        parameters = {
            "result": {"type": "string", "description": "the name of the result, as the hint gives it"},
            "start": {"type": "integer", "description": "the first character to show"},
        }
        return Tool(READ_MORE, "Read on in a result that was shown in part.", parameters, self._read, bookkeeping=False)

    def _read(self, result: str, start: int) -> str:
        text = self._whole.get(result)
        if text is None:
            raise ToolError(f"no result named {result} was shown in part")
        if not 0 <= start < len(text):
            raise ToolError(f"{result} has characters 0 to {len(text) - 1}")
        end = min(len(text), start + self.most)
        rest = f"\n[{len(text) - end} characters follow; {_shows(result, end)}]" if end < len(text) else ""
        return text[start:end] + rest
