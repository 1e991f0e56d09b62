"""Writes logs as llama-server would have written them: rows in, lines of an era out, and a wrapper around them.

The renderer knows the formats independently of the parser: every line is spelt out here. ``expected`` says what a
reader can know from what was written, by the rules for rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """One request as it happened."""

    slot: int
    task: int
    cached: int
    processed: int
    generated: int
    prompt_ms: float
    eval_ms: float
    outcome: str = "ok"  # ok, cancelled, rejected, failed, failed_after
    truncated: bool = False
    system: int = 0  # tokens of a system prompt (era B)

    @property
    def prompt(self) -> int:
        return self.cached + self.processed

    @property
    def held(self) -> int:
        return self.prompt + self.generated - 1


OVERFLOW = "request ({} tokens) exceeds the available context size (4096 tokens), try increasing it"
CACHE_FULL = "Context size has been exceeded."
UNPARSED = "The model produced output that does not match the expected peg-native format"


def _rates(ms: float, n: int) -> str:
    return f"({ms / max(n, 1):8.2f} ms per token, {n / ms * 1000 if ms else float('inf'):8.2f} tokens per second)"


# -- eras -------------------------------------------------------------------------------------------------------------


def printf(spec: Spec) -> list[str]:
    """Era A. There are no cancel or error lines; a task that does not finish is just released."""
    lines = [
        f"slot {spec.slot} is processing [task id: {spec.task}]",
        f"slot {spec.slot} : in cache: {spec.cached} tokens | to process: {spec.processed} tokens",
        f"slot {spec.slot} : kv cache rm - [{spec.cached}, end)",
        "",
    ]
    p, g = spec.processed, spec.generated
    if spec.outcome == "ok":
        lines += [
            f"print_timings: prompt eval time = {spec.prompt_ms:10.2f} ms / {p:5d} tokens {_rates(spec.prompt_ms, p)}",
            f"print_timings:        eval time = {spec.eval_ms:10.2f} ms / {g:5d} runs   {_rates(spec.eval_ms, g)}",
            f"print_timings:       total time = {spec.prompt_ms + spec.eval_ms:10.2f} ms",
        ]
    lines.append(f"slot {spec.slot} released ({spec.prompt + g} tokens in cache)")
    request = {"timestamp": 1700000000, "level": "INFO", "function": "log_server_request", "line": 2601}
    request |= {"message": "request", "remote_addr": "127.0.0.1", "remote_port": 61022, "status": 200}
    lines.append(json.dumps(request | {"method": "POST", "path": "/completion", "params": {}}, separators=(",", ":")))
    return lines


def _structured(spec: Spec, write: Callable[[str, str, str, dict], str]) -> list[str]:
    ids = {"id_slot": spec.slot, "id_task": spec.task}
    lines = [
        write("INFO", "launch_slot_with_task", "slot is processing task", ids),
        write("INFO", "update_slots", "kv cache rm [p0, end)", ids | {"p0": spec.cached + spec.system}),
        write("INFO", "update_slots", "kv cache rm [p0, end)", ids | {"p0": spec.cached + spec.system + 7}),
    ]
    if spec.outcome in ("ok", "failed_after"):
        prompt = f"prompt eval time     = {spec.prompt_ms:10.2f} ms / {spec.processed:5d} tokens {_rates(1, 1)}"
        eval_ = f"generation eval time = {spec.eval_ms:10.2f} ms / {spec.generated:5d} runs   {_rates(1, 1)}"
        fields = {"t_prompt_processing": spec.prompt_ms, "n_prompt_tokens_processed": spec.processed, "t_token": 1.5}
        lines.append(write("INFO", "print_timings", prompt, ids | fields))
        fields = {"t_token_generation": spec.eval_ms, "n_decoded": spec.generated, "n_tokens_second": 1e-05}
        lines.append(write("INFO", "print_timings", eval_, ids | fields))
        total = {"t_prompt_processing": spec.prompt_ms, "t_token_generation": spec.eval_ms, "t_total": 1.0}
        lines.append(write("INFO", "print_timings", "          total time = 1.00 ms", ids | total))
    fields = {"n_ctx": 8192, "n_past": spec.held, "n_system_tokens": spec.system, "n_cache_tokens": spec.held}
    lines.append(write("INFO", "update_slots", "slot released", ids | fields | {"truncated": spec.truncated}))
    request = {"remote_addr": "127.0.0.1", "remote_port": 6102, "status": 200, "method": "POST", "path": "/completion"}
    lines.append(write("INFO", "log_server_request", "request", request | {"params": {}}))
    return lines


def structured_text(spec: Spec) -> list[str]:
    def write(level: str, function: str, message: str, fields: dict) -> str:
        pairs = {"tid": "11744", "timestamp": 1723514861} | fields
        rest = " ".join(f"{key}={json.dumps(value, separators=(',', ':'))}" for key, value in pairs.items())
        return f"{level:>4} [{function:>24}] {message} | {rest}"

    return _structured(spec, write)


def structured_json(spec: Spec) -> list[str]:
    def write(level: str, function: str, message: str, fields: dict) -> str:
        record = {
            "tid": "14964",
            "timestamp": 1717067300,
            "level": level,
            "function": function,
            "line": 1,
            "msg": message,
        }
        return json.dumps(record | fields, separators=(",", ":"))

    return _structured(spec, write)


def structured_ollama(spec: Spec) -> list[str]:
    """Ollama's fork: older names, keys sorted."""

    def write(level: str, function: str, message: str, fields: dict) -> str:
        renamed = {"id_slot": "slot_id", "id_task": "task_id"}
        record = {renamed.get(key, key): value for key, value in fields.items()}
        record |= {
            "function": function,
            "level": level,
            "line": 1,
            "msg": message,
            "tid": "140",
            "timestamp": 1717067300,
        }
        return json.dumps(record, separators=(",", ":"), sort_keys=True)

    return _structured(spec, write)


def _timing_block(spec: Spec, tag: Callable[[str], str], *, tagged: bool, carriage: bool = False) -> list[str]:
    p, g = spec.processed, spec.generated
    texts = [
        f"prompt eval time = {spec.prompt_ms:10.2f} ms / {p:5d} tokens {_rates(spec.prompt_ms, p)}",
        f"       eval time = {spec.eval_ms:10.2f} ms / {g:5d} tokens {_rates(spec.eval_ms, g)}",
        f"      total time = {spec.prompt_ms + spec.eval_ms:10.2f} ms / {p + g:5d} tokens",
    ]
    if tagged:
        return [tag(text) for text in (*texts, "   graphs reused =         50")]
    return [tag(""), *("\r" + text if carriage else text for text in texts)]


def slots(
    spec: Spec,
    *,
    stamp: bool = True,
    size: str | None = None,
    reuse: str | None = None,
    progress: str | None = None,
    tagged: bool = False,
    carriage: bool = False,
    release_first: bool = False,
    count: str = "n_tokens",
    http: str | None = None,
    idle: bool = True,
    child: bool = True,
    choice: str | None = None,
) -> list[str]:
    """Eras C, D and E; what a build prints at a level is chosen by the arguments."""
    seconds = spec.task % 60
    time = f"{spec.task // 60}.{seconds:02d}.322.344 " if stamp else ""

    def line(tag: str, function: str, text: str, level: str = "I") -> str:
        return f"{time}{level} {tag} {function:>12}: {text}" if stamp else f"{tag} {function:>12}: {text}"

    def slot(function: str, text: str, level: str = "I") -> str:
        return line("slot", function, f"id {spec.slot:2d} | task {spec.task} | {text}", level)

    def timing(text: str) -> str:
        return slot("print_timing", text)

    lines = []
    if choice:
        lines.append(line("slot", "get_availabl", f"id {spec.slot:2d} | task -1 | {choice}"))
    lines.append(slot("launch_slot_", "processing task" + (", is_child = 0" if child else "")))
    if size:
        lines.append(slot("update_slots", size.format(spec.prompt)))
    rejected, failed, cancelled = (spec.outcome == name for name in ("rejected", "failed", "cancelled"))
    release = slot(
        "release", f"stop processing: {count} = {0 if rejected else spec.held}, truncated = {int(spec.truncated)}"
    )
    error = OVERFLOW.format(spec.prompt) if rejected else CACHE_FULL
    if reuse and not rejected:
        lines += [slot("update_slots", reuse.format(spec.cached)), slot("update_slots", reuse.format(spec.prompt))]
    if progress and not rejected:
        lines.append(slot("update_slots", progress.format(spec.prompt)))
    if cancelled:
        lines.append(line("srv", "stop", f"cancel task, id_task = {spec.task}", "W"))
    if rejected or failed:
        sent = line("srv", "send_error", f"task id = {spec.task}, error: {error}", "E")
        lines += [release, sent] if release_first else [sent, release]
        lines.append(line("srv", "stop", f"cancel task, id_task = {spec.task}", "W"))
    elif cancelled:
        lines.append(release)
    else:
        block = _timing_block(spec, timing, tagged=tagged, carriage=carriage)
        lines += [release, *block] if release_first else [*block, release]
    if idle:
        lines.append(line("srv", "update_slots", "all slots are idle"))
    if spec.outcome == "failed_after":
        body = json.dumps({"error": {"code": 500, "message": UNPARSED, "type": "server_error"}}, separators=(",", ":"))
        lines.append(line("srv", "stop", f"cancel task, id_task = {spec.task}", "W"))
        lines.append(line("srv", "operator()", f"got exception: {body}", "W"))
    if http:
        lines.append(http if http.startswith("request") else line("srv", "log_server_r", http))
    return lines


SIZE_OLD = "prompt tokenized, n_ctx_slot = 4096, n_keep = 0, n_prompt_tokens = {}"
SIZE_MIDDLE = "new prompt, n_ctx_slot = 4096, n_keep = 0, n_prompt_tokens = {}"
SIZE = "new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = {}"
CHOICE = "selected slot by LCP similarity, {} = 0.869 (> 0.100 thold), f_keep = 0.025"
HTTP = "request: POST /v1/chat/completions 127.0.0.1 200"


@dataclass(frozen=True)
class Format:
    """One way a build writes requests, and which fields a reader can take from it."""

    name: str
    era: str
    write: Callable[[Spec], list[str]]
    prints_prompt: bool = False
    prints_reuse: bool = False
    printf: bool = False
    outcomes: tuple[str, ...] = ("ok", "cancelled", "rejected", "failed", "failed_after")


def _c(name: str, **options) -> Format:
    def write(spec: Spec) -> list[str]:
        return slots(spec, **({"stamp": False, "http": HTTP} | options))

    return Format(name, "C", write, prints_prompt=True, prints_reuse=True)


def _reduced(name: str, era: str, *, trace: bool = False, **options) -> Format:
    if trace:
        options |= {"size": SIZE, "reuse": "cached n_tokens = {0}, memory_seq_rm [{0}, end)", "http": f"done {HTTP}"}

    def write(spec: Spec) -> list[str]:
        return slots(spec, **options)

    return Format(name, era, write, prints_prompt=trace, prints_reuse=trace)


FORMATS = (
    Format("A", "A", printf, prints_reuse=True, printf=True, outcomes=("ok",)),
    Format("B text", "B", structured_text, prints_reuse=True, outcomes=("ok",)),
    Format("B json", "B", structured_json, prints_reuse=True, outcomes=("ok",)),
    Format("B ollama", "B", structured_ollama, prints_reuse=True, outcomes=("ok",)),
    _c(
        "C b3761",
        size=SIZE_OLD,
        reuse="kv cache rm [{}, end)",
        count="n_past",
        release_first=True,
        carriage=True,
        child=False,
    ),
    _c("C b6000", size=SIZE_MIDDLE, reuse="kv cache rm [{}, end)", count="n_past", release_first=True, child=False),
    _c("C b6700", size=SIZE_MIDDLE, reuse="n_past = {0}, memory_seq_rm [{0}, end)", count="n_past", child=False),
    _c("C b8000", size=SIZE, reuse="n_tokens = {0}, memory_seq_rm [{0}, end)", progress="prompt done, n_tokens = {}"),
    _c("C b8000 stamped", size=SIZE, reuse="n_tokens = {0}, memory_seq_rm [{0}, end)", stamp=True),
    _reduced("D b9151", "D", choice=CHOICE.format("sim_best")),
    _reduced("D b9230", "D", choice=CHOICE.format("sim_best"), tagged=True),
    _reduced("D b9230 trace", "D", trace=True, choice=CHOICE.format("sim_best"), tagged=True),
    _reduced("E", "E", choice=CHOICE.format("f_sim_best"), tagged=True, idle=False),
    _reduced("E trace", "E", trace=True, choice=CHOICE.format("f_sim_best"), tagged=True),
)


def expected(spec: Spec, form: Format) -> dict:
    """What can be known of a request from its lines in a format."""
    rejected = spec.outcome == "rejected"
    timed = spec.outcome in ("ok", "failed_after")
    row: dict = {
        "slot": spec.slot,
        "task": spec.task,
        "prompt_tokens": spec.prompt if form.prints_prompt else None,
        "cached_tokens": spec.cached if form.prints_reuse and not rejected and not spec.system else None,
        "processed_tokens": spec.processed if timed else 0 if rejected else None,
        "generated_tokens": spec.generated if timed else 0 if rejected else None,
        "prompt_ms": spec.prompt_ms if timed else None,
        "eval_ms": spec.eval_ms if timed else None,
        "truncated": None if form.printf else spec.truncated,
        "status": "failed" if spec.outcome == "failed_after" else spec.outcome,
        "release_n_tokens": 0 if rejected else spec.prompt + spec.generated if form.printf else spec.held,
    }
    if spec.system:
        row["cached_tokens_derived"] = spec.cached
    if timed and not form.prints_prompt and (form.prints_reuse or not spec.truncated):
        row["prompt_tokens_derived"] = spec.prompt
        if not form.prints_reuse:
            row["cached_tokens_derived"] = spec.cached
    errors = {"rejected": OVERFLOW.format(spec.prompt), "failed": CACHE_FULL, "failed_after": UNPARSED}
    if spec.outcome in errors:
        row["error"] = errors[spec.outcome]
    return row


# -- wrappers ---------------------------------------------------------------------------------------------------------

LEVEL_COLOURS = {"I": "32", "W": "35", "E": "31", "D": "33"}


def ansi(lines: list[str]) -> list[str]:
    """Colours as the server prints them where there is a time and a level, else around the whole line."""
    coloured = []
    for line in lines:
        head, _, rest = line.partition(" ")
        if head.count(".") == 3 and rest[1:2] == " ":
            coloured.append(f"\x1b[34m{head}\x1b[0m \x1b[{LEVEL_COLOURS[rest[0]]}m{rest[0]} \x1b[0m{rest[2:]}")
        else:
            coloured.append(f"\x1b[0m{line}")
    return coloured


def each(prefix: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [prefix + line for line in lines]


def between(*others: str) -> Callable[[list[str]], list[str]]:
    """Lines of another program after every line."""
    return lambda lines: [text for index, line in enumerate(lines) for text in (line, others[index % len(others)])]


JOURNALD = each("Dec 02 21:39:28 devbox llama-server[24689]: ")
NO_HOST = each("Dec 02 21:39:28 llama-server[24689]: ")
ISO = each("2026-08-22T10:11:12.123456+02:00 devbox llama-server[77]: ")
COMPOSE = each("llama-1  | ")
COMPOSE_STAMPED = each("llama-1  | 2026-08-22T10:11:12.123456789Z ")
ROUTER = each("[42027] ")
SWAP = between(
    '[INFO] Request 172.28.0.1 "POST /v1/chat/completions HTTP/1.1" 200 781 "Python/3.11 aiohttp/3.12.15" 17.09s'
)
OLLAMA = between(
    'time=2026-08-22T10:11:12.123+02:00 level=WARN source=runner.go:122 msg="truncating input prompt" '
    "limit=2048 prompt=3000 keep=4 new=2048",
    '[GIN] 2026/08/22 - 10:11:12 | 200 |  1.234567s |       127.0.0.1 | POST     "/api/chat"',
)
WRAPPERS: dict[str, tuple[Callable[[list[str]], list[str]], ...]] = {
    "plain": (),
    "ansi": (ansi,),
    "journald": (JOURNALD,),
    "journald no host": (NO_HOST,),
    "journald short-precise+router": (ROUTER, each("Dec 02 21:39:28.123456 devbox llama-server[24689]: ")),
    "journald short-full+router": (ROUTER, each("Tue 2025-12-02 21:39:28 UTC devbox llama-server[24689]: ")),
    "journald no host no pid+router": (ROUTER, each("Dec  2 21:39:28 llama-server: ")),
    "syslog-iso": (ISO,),
    "docker-compose": (COMPOSE,),
    "docker-compose-timestamps": (COMPOSE_STAMPED,),
    "router": (ROUTER,),
    "llama-swap": (SWAP,),
    "ollama": (OLLAMA,),
    "docker-compose+router": (ROUTER, COMPOSE),
    "docker-compose-timestamps+router": (ROUTER, COMPOSE_STAMPED),
    "journald+router": (ROUTER, JOURNALD),
    "syslog-iso+router": (ROUTER, ISO),
    "docker-compose+llama-swap": (SWAP, COMPOSE),
    "router+ansi": (ansi, ROUTER),
    "docker-compose+ansi": (ansi, each("\x1b[36mllama-1  | \x1b[0m")),
    "journald+ansi": (ansi, JOURNALD),
    "journald+ollama": (OLLAMA, JOURNALD),
    "journald+docker-compose-timestamps+router+ansi": (ansi, ROUTER, COMPOSE_STAMPED, JOURNALD),
}


def wrap(lines: list[str], name: str) -> list[str]:
    for step in WRAPPERS[name]:
        lines = step(lines)
    return lines
