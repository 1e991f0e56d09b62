"""What this server and this model can do, as JSON values for the manifest. True, False, or None where it can't be told.

`facts` is for every run: it asks only for what needs no evaluation, so the slot stays as it is. `full_probe` sends a
few short requests, all tagged `probe`, empties the slot afterwards and is kept per server build and model: it is for
`doctor` and for once per sweep.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.record.folder import RecordError, read_json, write_json
from harness.serving.outcome import ChatRequest, Cut, Outcome, Reply
from harness.serving.running import RunningServer

FORMAT = 1
MARK = "zebra crossing"
LOG_HEAD_BYTES = 262144

# Told about every request of a probe and what came of it.
OnExchange = Callable[[ChatRequest, Outcome], None]

_TOOL = {
    "type": "function",
    "function": {
        "name": "list_files",
        "description": "List the files of the project.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
_SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"colour": {"enum": ["mauve"]}},
            "required": ["colour"],
            "additionalProperties": False,
        },
    },
}


def facts(server: RunningServer, model_sha256: str | None = None, cache: Path | None = None) -> dict[str, Any]:
    """What is known without evaluating a token; the slot is not touched.

    With the model's digest and a cache folder `abilities` holds what an earlier full probe found, else it is None.
    """
    props, client = server.props or {}, server.client()
    template = props.get("chat_template")
    slots = props.get("total_slots")
    known = {
        "format": FORMAT,
        "build": server.build,
        "n_ctx": server.n_ctx,
        "total_slots": slots if isinstance(slots, int) else None,
        "cold": server.cold,
        "template_sha256": _sha256(template) if isinstance(template, str) else None,
        "template_caps": props.get("chat_template_caps"),
        "tokenize": client.tokenize("a") is not None,
        "apply_template": client.apply_template([{"role": "user", "content": "a"}]) is not None,
        "slots": client.slots() is not None,
        "reasoning_kept": _reasoning_kept(server),
        **_from_log(server.log),
    }
    file = _cache_file(known, model_sha256, cache)
    return known | {"abilities": None if file is None else _read(file)}


def full_probe(
    server: RunningServer, model_sha256: str | None, cache: Path | None, on_exchange: OnExchange | None = None
) -> dict[str, Any]:
    """The facts with `abilities` for certain, asked for where the cache has none; leaves the slot empty, or `cold` False.

    cache: a folder in which results lie by server build, model digest and template; None, or an unknown build or model,
    means that everything is asked again. `cached` in the result says where it came from.
    """
    known = facts(server, model_sha256, cache)
    if known["abilities"] is not None:
        return known | {"cached": True}
    abilities = _abilities(server, on_exchange)
    file = _cache_file(known, model_sha256, cache)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"format": FORMAT, "abilities": abilities})
    return known | {"cold": server.cold, "abilities": abilities, "cached": False}


def _abilities(server: RunningServer, on_exchange: OnExchange | None) -> dict[str, Any]:
    def ask(text: str, max_tokens: int, **fields: Any) -> Outcome:
        request = ChatRequest(
            messages=[{"role": "user", "content": text}],
            seed=0,
            temperature=0.0,
            max_tokens=max_tokens,
            tag="probe",
            extra=server.request_extra,
            **fields,
        )
        outcome = server.client().chat(request)
        if on_exchange is not None:
            on_exchange(request, outcome)
        return outcome

    server.cold = False
    try:
        first = ask("Say one word about the weather.", 1)
        again = ask("Say one word about the weather.", 1)
        call = ask("List the files of the folder src with the tool.", 64, tools=[_TOOL])
        formed = ask("Which colour is the sky?", 24, response_format=_SCHEMA)
    finally:
        server.erase()
    timed = _timings(first)
    return {
        "chat": isinstance(first, (Reply, Cut)) and first.status == 200,
        "usage": isinstance(first, (Reply, Cut)) and first.usage is not None,
        "timings": timed is not None and timed.prompt_n is not None,
        "reuse_told": timed is not None and timed.cache_n is not None,
        "cache_reuse": _reuses(again),
        "native_tool_calls": _calls(call),
        "json_schema": _obeys(formed),
    }


def _timings(outcome: Outcome) -> Any:
    return outcome.timings if isinstance(outcome, (Reply, Cut)) else None


def _reuses(again: Outcome) -> bool | None:
    """Whether the same prompt, sent a second time, is reused but for the one token that is always evaluated."""
    timings = _timings(again)
    if timings is None or timings.cache_n is None or timings.prompt_n is None:
        return None
    return timings.cache_n > 0 and timings.prompt_n == 1


def _calls(outcome: Outcome) -> bool | None:
    if isinstance(outcome, (Reply, Cut)) and outcome.message is not None:
        if outcome.message.tool_calls:
            return True
        return False if isinstance(outcome, Reply) else None  # a cut reply might have become a call
    return None


def _obeys(outcome: Outcome) -> bool | None:
    if not isinstance(outcome, Reply):
        return None
    return re.fullmatch(r'\s*\{\s*"colour"\s*:\s*"mauve"\s*\}\s*', outcome.message.content or "") is not None


def _reasoning_kept(server: RunningServer) -> bool | None:
    """Whether the template shows the model its own earlier thinking in the midst of a series of tool calls."""
    call = {"id": "call_0", "type": "function", "function": {"name": "list_files", "arguments": '{"path": "."}'}}
    text = server.client().apply_template(
        [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "reasoning_content": MARK, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0", "content": "a.py"},
        ],
        [_TOOL],
    )
    return None if text is None else MARK in text


def _from_log(log: Path | None) -> dict[str, Any]:
    """What the server said at its start; all None without its log."""
    keys = ("architecture", "trained_window", "sliding_window", "checkpoints", "shift_refused", "hybrid")
    if log is None:
        return dict.fromkeys(keys)
    with log.open("rb") as f:
        text = f.read(LOG_HEAD_BYTES).decode("utf-8", "replace")

    def number(pattern: str) -> int | None:
        found = re.search(pattern, text)
        return int(found[1]) if found else None

    architecture = re.search(r"print_info: arch\s+= (\S+)", text)
    swa = number(r"print_info: n_swa\s+= (\d+)")
    values: tuple[Any, ...] = (
        architecture[1] if architecture else None,
        number(r"print_info: n_ctx_train\s+= (\d+)"),
        swa,
        number(r"context checkpoints enabled, max = (\d+)"),
        bool(re.search(r"(?:cache_reuse|ctx_shift|context shift|shifting) is not supported", text)),
        bool(re.search(r"llama_memory_(?:recurrent|hybrid)", text)) if architecture else None,
    )
    return dict(zip(keys, values, strict=True))


def _cache_file(known: dict[str, Any], model_sha256: str | None, cache: Path | None) -> Path | None:
    if cache is None or model_sha256 is None or known["build"] is None:
        return None
    key = _sha256("\n".join([known["build"], model_sha256, known["template_sha256"] or ""]))
    return cache / f"{key[:16]}.json"


def _read(file: Path) -> dict[str, Any] | None:
    try:
        value = read_json(file)
    except RecordError:  # not there, or damaged: asked again
        return None
    return value["abilities"] if isinstance(value, dict) and value.get("format") == FORMAT else None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
