"""A reply as it is written: parts that become one generated text of a wanted size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from harness.serving.errors import ServingError
from harness.serving.scripted import filler
from harness.serving.scripted.template import arguments_text, reply_text
from harness.serving.scripted.tokenizer import count

# Beyond the room that is left, so that the reply is cut and not just fits.
_OVERSHOOT = 16


@dataclass(frozen=True)
class Draft:
    """A reply before it has a size. calls: (name, arguments as a mapping, or as raw text)."""

    say: str = ""
    think: str = ""
    calls: tuple[tuple[str, Any], ...] = ()

    def text(self) -> str:
        """The generated text, without its end token."""
        calls = [(name, args if isinstance(args, str) else arguments_text(args)) for name, args in self.calls]
        return reply_text(self.think, self.say, calls)

    def tokens(self) -> int:
        """The reply's size in tokens, its end token included."""
        return count(self.text()) + 1


def of_size(draft: Draft, tokens: int, part: str | None = None) -> Draft:
    """The draft drawn out to exactly `tokens` tokens; raises ServingError when it is larger already."""
    longer, extra = draft, 0
    for _ in range(4):
        missing = tokens - longer.tokens()
        if missing == 0:
            return longer
        extra += missing  # the seam between the text and what is added may cost a token more or less than alone
        if extra < 0:
            break
        longer = _longer(draft, extra, part or _last_part(draft))
    raise ServingError(f"scenario: a reply of {tokens} tokens was asked for, but its text has {draft.tokens()}")


def past(draft: Draft, tokens: int, part: str | None = None) -> Draft:
    """The draft drawn out to more than `tokens` tokens, if it is not larger anyway."""
    missing = tokens + _OVERSHOOT - draft.tokens()
    return _longer(draft, missing, part or _last_part(draft)) if missing > 0 else draft


def _last_part(draft: Draft) -> str:
    if draft.calls:
        return "call"
    return "think" if draft.think and not draft.say else "say"


def _longer(draft: Draft, tokens: int, part: str) -> Draft:
    extra = filler.more(tokens)
    if part == "think":
        return replace(draft, think=draft.think.rstrip(" ") + extra)
    if part == "say":
        return replace(draft, say=draft.say.rstrip(" ") + extra)
    if not draft.calls:
        raise ServingError("scenario: fill_in: call, but the reply has no call")
    name, arguments = draft.calls[-1]
    if isinstance(arguments, str):
        arguments = arguments.rstrip(" ") + extra
    else:
        key = next((k for k in reversed(arguments) if isinstance(arguments[k], str)), None)
        if key is None:
            raise ServingError(f"scenario: the call of {name} has no text argument that could be drawn out")
        arguments = arguments | {key: arguments[key].rstrip(" ") + extra}
    return replace(draft, calls=(*draft.calls[:-1], (name, arguments)))
