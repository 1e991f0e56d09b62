"""Two runs side by side: the first step at which they differ, and in what. Times, memory and settings are left aside.

Two cold runs of one cell and seed should give the same events. Where they do not, the first difference is the cause or next
to it; everything later follows from it. Settings that differ (runs of two cells) are told apart from what then happened, so
that two arms can be compared too: they may well act alike for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from analysis.tables.records import Record, Records
from harness.record.events import read_events
from harness.record.folder import RunFolder

Event = dict[str, Any]
# Not compared: settings as given (told apart), memory, and what is no event of the run itself.
LEFT_OUT = ("start", "resources")
TIMES = ("t", "ms", "prompt_ms", "predicted_ms", "seconds")
HEAD = ("v", "i", "event")
SETTINGS = ("policy", "rule", "rule_version", "gate")
# In the order in which one thing follows from another; the first that differs names the difference.
WORDS = {
    "request": (
        ("params.seed", "the seed of the request"),
        ("params", "the parameters of the request"),
        ("n_messages", "the number of messages sent"),
        ("sha256", "the body of the request (messages and parameters are alike: its tools or its encoding)"),
    ),
    "response": (
        ("outcome", "the outcome of the request"),
        ("usage.prompt_tokens", "the size of the prompt"),
        ("timings.cache_n", "how much of the prompt was reused"),
        ("timings.prompt_n", "how much of the prompt was evaluated"),
        ("message.reasoning", "the thinking"),
        ("message.content", "the text of the reply"),
        ("message.tool_calls", "the calls of the reply"),
        ("timings.predicted_n", "the length of the reply"),
        ("dropped", "what the agent made of a cut reply"),
    ),
    "message": (("message", "a message of the conversation"),),
    "call": (
        ("name", "which tool was called"),
        ("arguments", "the arguments of a call"),
        ("result", "the result of a tool"),
        ("ok", "whether a call worked"),
    ),
    "approval": (("command", "a command"), ("verdict", "the rule's verdict"), ("answer", "the answer to a question")),
    "command": (("exit_code", "the exit code of a command"), ("output_chars", "how much a command printed")),
    "context": (("cleared", "what a clear changed"), ("after", "what a clear left"), ("tokens", "when a clear came")),
    "tree": (("", "the files of the copy"),),
    "finish_check": (("passed", "the finish check's verdict"), ("output", "the finish check's output")),
    "stop": (("reason", "how the run ended"),),
}
SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """Where two runs part. number: of the compared event, from 0. fields: {path: [of the first run, of the second]}."""

    number: int
    step: int | None
    event: str
    why: str
    fields: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Two runs. settings: {key: [first, second]} of what can change the result; events: compared before they part."""

    runs: tuple[str, str]
    cold: tuple[bool | None, bool | None]
    settings: dict[str, list[Any]]
    events: int
    first: Difference | None

    @property
    def same_cell(self) -> bool:
        return not self.settings

    def line(self) -> str:
        """One sentence: where they part and why, or that they do not."""
        warm = [r for r, cold in zip(self.runs, self.cold, strict=True) if cold is False]
        also = f" (began warm: {', '.join(warm)})" if warm else ""
        if self.first is None:
            return f"the same {self.events} events, times aside{also}"
        place = "the start" if self.first.step is None else f"step {self.first.step}"
        shown = "; ".join(f"{k}: {a} | {b}" for k, a, b in list(self.shown())[:1])
        return f"first difference at {place}: {self.first.why}{': ' + shown if shown else ''}{also}"

    def shown(self) -> Iterator[tuple[str, str, str]]:
        """(path, first, second) of every field that differs, long texts from where they part."""
        for path, (a, b) in (self.first.fields if self.first else {}).items():
            yield path, *_from_where_they_part(a, b)

    def document(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        first = None
        if self.first is not None:
            first = {
                "number": self.first.number,
                "step": self.first.step,
                "event": self.first.event,
                "why": self.first.why,
                "fields": self.first.fields,
            }
        return {
            "runs": list(self.runs),
            "cold": list(self.cold),
            "same_cell": self.same_cell,
            "settings": self.settings,
            "events": self.events,
            "same": first is None,
            "first_difference": first,
        }


def compare(a: RunFolder, b: RunFolder) -> Comparison:
    """Compares two runs event by event.

    Raises:
        RecordError, EventError: a manifest or events file that can't be read.
    """
    one, two = a.manifest(), b.manifest()
    settings = _differing(one.get("identity") or {}, two.get("identity") or {})
    # Another seed is a setting; it stands in every request, and what matters is what came of it.
    aside = ("params.seed", "sha256") if "settings.seed" in settings else ()
    events, first = first_difference(read_events(a.events), read_events(b.events), aside)
    return Comparison(
        (str(one.get("run_id")), str(two.get("run_id"))),
        tuple((m.get("server") or {}).get("cold") for m in (one, two)),  # type: ignore[arg-type]
        settings,
        events,
        first,
    )


def first_difference(
    a: Iterable[Event], b: Iterable[Event], aside: Sequence[str] = ()
) -> tuple[int, Difference | None]:
    """(how many events agree before the first difference, the difference or None). aside: paths that are not compared."""
    number = 0
    for x, y in zip_longest(_compared(a), _compared(b)):
        found = _difference(number, x, y, aside)
        if found is not None:
            return number, found
        number += 1
    return number, None


def _compared(events: Iterable[Event]) -> Iterator[Event]:
    return (e for e in events if e["event"] not in LEFT_OUT)


def _difference(number: int, x: Event | None, y: Event | None, aside: Sequence[str]) -> Difference | None:
    if x is None or y is None:
        left = y if x is None else x
        assert left is not None
        which = "first" if x is None else "second"
        return Difference(
            number, left.get("step"), left["event"], f"the {which} run ends here, the other goes on ({left['event']})"
        )
    if x["event"] != y["event"]:
        why = f"another thing happened: {x['event']} in the first run, {y['event']} in the second"
        return Difference(number, x.get("step"), x["event"], why)
    fields = {p: v for p, v in _differing(_facts(x), _facts(y)).items() if p not in aside}
    if not fields:
        return None
    return Difference(number, x.get("step"), x["event"], *_reason(x["event"], fields))


def _reason(event: str, fields: dict[str, list[Any]]) -> tuple[str, dict[str, list[Any]]]:
    """Words for what differs, and the fields with the named one first."""
    for prefix, words in WORDS.get(event, ()):
        named = [p for p in fields if p == prefix or not prefix or p.startswith((f"{prefix}.", f"{prefix}["))]
        if named:
            return words, {p: fields[p] for p in [*named, *(p for p in fields if p not in named)]}
    return f"the event {event.replace('_', ' ')}", fields


def _facts(event: Event) -> Event:
    return {k: v for k, v in event.items() if k not in (*HEAD, *SETTINGS)}


def _differing(a: Any, b: Any, path: str = "") -> dict[str, list[Any]]:
    """{path: [a, b]} of the leaves that differ, times aside."""
    if isinstance(a, dict) and isinstance(b, dict):
        found: dict[str, list[Any]] = {}
        for key in [*a, *(k for k in b if k not in a)]:
            if key not in TIMES:
                found |= _differing(a.get(key), b.get(key), f"{path}.{key}" if path else str(key))
        return found
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found = {}
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            found |= _differing(x, y, f"{path}[{i}]")
        return found
    return {} if a == b and isinstance(a, bool) == isinstance(b, bool) else {path: [a, b]}


def _from_where_they_part(a: Any, b: Any) -> tuple[str, str]:
    if not (isinstance(a, str) and isinstance(b, str)):
        return _short(repr(a)), _short(repr(b))
    part = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, part - SHOWN // 3) if max(len(a), len(b)) > SHOWN else 0
    dots = "…" if start else ""
    return dots + _short(repr(a[start:])), dots + _short(repr(b[start:]))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def compare_repeats(records: Records) -> list[tuple[Record, Record, Comparison]]:
    """Every repeat of a run beside the run that counts: two cold runs of one cell and seed."""
    counted = {(r.result.get("experiment"), r.result.get("run_id")): r for r in records.runs}
    pairs = [(counted.get((r.result.get("experiment"), r.result.get("run_id"))), r) for r in records.repeats]
    return [(a, b, compare(a.folder, b.folder)) for a, b in pairs if a is not None]
