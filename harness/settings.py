"""What one run is made of: the validated settings that every room receives.

Hydra composes the configuration; `from_config` checks it once and turns it into these frozen dataclasses. Nothing past
that edge sees a DictConfig. `identity` lists what can change a run's result: paths, ports, threads and display are left
out on purpose, so that the same experiment has the same run ids on every machine.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints


class SettingsError(ValueError):
    """A setting that does not hold; the message is one line that names the key and the mend."""


@dataclass(frozen=True)
class ModelSettings:
    """The model under the agent. `sha256` is filled in from the file that is really used."""

    name: str
    path: str | None = None
    chat_template: str | None = None


@dataclass(frozen=True)
class ServerSettings:
    """How to get a model server, and what every request to it carries.

    n_ctx: the window of the one slot, in tokens. max_tokens: the reply limit in tokens, None for none. record_tokens: ask for each
    reply's token ids, as sampled (llama-server tells them with the log probabilities); they can't change a reply.
    """

    kind: Literal["embedded", "launch", "attach", "scripted", "tape"]
    n_ctx: int
    max_tokens: int | None = None
    request_timeout_s: float = 1800.0
    start_timeout_s: float = 120.0
    threads: int | None = None
    port: int | None = None
    binary: str | None = None
    extra_args: tuple[str, ...] = ()
    url: str | None = None
    api_key: str | None = None
    scenario: str | None = None
    tape: str | None = None
    record_tape: bool = False
    record_tokens: bool = False
    cache_reuse: int = 0
    context_shift: bool = False
    decision_url: str | None = None


@dataclass(frozen=True)
class ExternalSettings:
    """Somebody else's agent, as a program to start (docs/external_agents.md); the loop's own switches mean nothing then.

    command: split into words as a shell would, then placeholders like {task} and {base_url} are filled in; no shell runs it.
    files: programs and folders that it needs, each a path (from the study's folder) or the name of a shipped one; seen read-only
    below {files}. packages: distributions of the harness's environment that it may import; install: how one gets them. env: further
    environment variables, NAME=value, placeholders allowed.
    """

    command: str
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    install: str | None = None
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentSettings:
    """One version of the agent loop; a preset of switches, never a copy of the code. With `external`, another program altogether.

    on_cut: `as_reply` takes what a cut reply holds as an ordinary reply, `drop` throws it away and says so to the model.
    on_overflow: `stop`, or `clear_and_retry` once. keep_bad_arguments: store call arguments that are not JSON as they came
    (the published versions) instead of repaired. same_content_notice: tell the model that it wrote the same content again.
    max_unusable: how many cut or unreadable replies in a row end the run; None for no bound but max_steps.
    """

    name: str
    max_steps: int = 30
    temperature: float = 0.6
    tools: tuple[str, ...] = ("list_files", "read_file", "write_file", "edit_file", "bash")
    prompt: str = "published"
    files_in_first_message: bool = False
    guard: bool = True
    on_cut: Literal["as_reply", "drop"] = "as_reply"
    on_overflow: Literal["stop", "clear_and_retry"] = "stop"
    keep_bad_arguments: bool = True
    same_content_notice: bool = False
    max_unusable: int | None = None
    time_limit_s: float | None = None
    command_timeout_s: float = 60.0
    command_output_chars: int = 6000
    fetch_hosts: tuple[str, ...] = ()
    external: ExternalSettings | None = None


@dataclass(frozen=True)
class ProtocolSettings:
    """How calls travel. no_repeat (constrained only): the tool just used is left out unless it changed something."""

    name: Literal["native", "text_json", "constrained"] = "native"
    no_repeat: bool = False


@dataclass(frozen=True)
class ApprovalSettings:
    """Which commands run unasked, who answers for the others, and whether a decision model gives an opinion first."""

    rule: str = "second_printed"
    answer: Literal["auto_yes", "auto_no", "terminal"] = "auto_yes"
    advice: bool = False
    advice_url: str | None = None
    advice_wording: str = "published"


@dataclass(frozen=True)
class ContextSettings:
    """What is done with old context (docs/context.md); `published` takes its trigger and keep only, as it was published.

    policy: none, published, published_before_send, guarded, summarise or kv_shift.
    trigger: a fraction of the window (at most 1) or a reserve in tokens (above 1); None for the policy's own.
    keep: newest tool results that stay. keep_thinking: newest replies that keep their thinking.
    floor: the size a clear aims at, as a fraction of the window; guarded keeps 1 result where `keep` are still above it.
    clear: what a clear takes out: results, thinking, bodies (what a call writes into a file).
    ledger: old steps leave as a whole and become one line each, instead of staying with placeholders.
    result_cap: characters of a tool result that the model sees at once; the rest by a `read_more` tool. None for no cap.
    clear_at_least: tokens that a clear must free to be made. adapt: keep less after clears that follow each other at once.
    summary_tokens: the reply limit of summarise's question.
    """

    policy: str = "none"
    trigger: float | None = None
    keep: int = 2
    keep_thinking: int = 1
    floor: float = 0.45
    clear: tuple[str, ...] = ("results", "thinking", "bodies")
    ledger: bool = False
    result_cap: int | None = None
    clear_at_least: int = 0
    adapt: bool = False
    summary_tokens: int = 400


@dataclass(frozen=True)
class FinishSettings:
    """When "done" is believed. timeout_s and output_chars bound the gate's own pytest run."""

    gate: Literal["none", "tests_pass", "evidence"] = "tests_pass"
    timeout_s: float = 300.0
    output_chars: int = 4000


@dataclass(frozen=True)
class TaskSettings:
    """The task's name and, for a task outside the shipped folder, the path to its folder."""

    name: str
    path: str | None = None


@dataclass(frozen=True)
class SandboxSettings:
    """Where the model's commands run. Limits: bytes, processes, bytes of one file, seconds of one grading run."""

    kind: Literal["bubblewrap", "none"] = "bubblewrap"
    memory_bytes: int = 4 * 2**30
    processes: int = 128
    file_bytes: int = 2**30
    disk_bytes: int = 2**31
    output_bytes: int = 8 * 2**20


@dataclass(frozen=True)
class RunSettings:
    """All settings of one run."""

    agent: AgentSettings
    server: ServerSettings
    model: ModelSettings
    task: TaskSettings
    protocol: ProtocolSettings = field(default_factory=ProtocolSettings)
    approval: ApprovalSettings = field(default_factory=ApprovalSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    finish: FinishSettings = field(default_factory=FinishSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    seed: int = 0

    def identity(self) -> dict[str, Any]:
        """The settings that can change the result, as plain JSON values (see NOT_IDENTITY for what is left out)."""
        plain = to_plain(self)
        for section, keys in NOT_IDENTITY.items():
            for key in keys:
                del plain[section][key]
        if plain["agent"]["external"] is not None:
            for key in ("files", "install"):  # of the files the digests count (harness.external.program)
                del plain["agent"]["external"][key]
        return plain


# Where a run happens and how long the harness waits for a server to start can't change what the model is asked. Of what stands
# in for a model (a scenario, a tape) the digest counts, not the name.
NOT_IDENTITY: dict[str, tuple[str, ...]] = {
    "server": (
        "start_timeout_s",
        "threads",
        "port",
        "binary",
        "url",
        "api_key",
        "scenario",
        "tape",
        "record_tape",
        "record_tokens",
        "decision_url",
    ),
    "model": ("path",),
    "task": ("path",),
    "approval": ("advice_url",),
}


def to_plain(value: Any) -> Any:
    """A settings dataclass as JSON values (tuples become lists)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [to_plain(v) for v in value]
    return value


def from_config(config: dict[str, Any]) -> RunSettings:
    """Builds the settings from a plain resolved config; raises SettingsError with the full key of what does not fit."""
    settings = _build(RunSettings, config, "")
    _check(settings)
    return settings


def _build(cls: type, config: Any, where: str) -> Any:
    if not isinstance(config, dict):
        raise SettingsError(f"{where or 'config'}: expected a group of settings, got {config!r}")
    hints = get_type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls)}
    for key in config:
        if key not in known:
            raise SettingsError(f"{_join(where, key)}: no such key; known here: {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, fld in known.items():
        full = _join(where, name)
        if name in config:
            values[name] = _convert(hints[name], config[name], full)
        elif fld.default is dataclasses.MISSING and fld.default_factory is dataclasses.MISSING:
            raise SettingsError(f"{full}: needed but not set")
    return cls(**values)


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _build(typing.cast(type, hint), value, where)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _convert(next(a for a in args if a is not type(None)), value, where)
    if origin is Literal:
        if value not in args:
            raise SettingsError(f"{where}: {value!r} is not one of {', '.join(map(str, args))}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise SettingsError(f"{where}: expected a list, got {value!r}")
        return tuple(_convert(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise SettingsError(f"{where}: expected {hint.__name__}, got {value!r}")
    return value


def _check(s: RunSettings) -> None:
    rules = [
        (s.server.n_ctx >= 256, "server.n_ctx", "at least 256 tokens"),
        (s.server.max_tokens is None or s.server.max_tokens >= 1, "server.max_tokens", "at least 1 token, or null"),
        (s.agent.max_steps >= 1, "agent.max_steps", "at least 1"),
        (0 <= s.agent.temperature <= 2, "agent.temperature", "between 0 and 2"),
        (s.context.keep >= 0, "context.keep", "0 or more"),
        (s.context.keep_thinking >= 0, "context.keep_thinking", "0 or more"),
        (
            s.context.result_cap is None or s.context.result_cap >= 200,
            "context.result_cap",
            "200 characters or more, or null",
        ),
        (s.context.clear_at_least >= 0, "context.clear_at_least", "0 tokens or more"),
        (s.context.summary_tokens >= 16, "context.summary_tokens", "16 tokens or more"),
        (
            s.context.trigger is None or 0 < s.context.trigger < math.inf,
            "context.trigger",
            "a fraction or a reserve above 0",
        ),
        (0 < s.context.floor <= 1, "context.floor", "a fraction of the window above 0, at most 1"),
        (s.server.kind != "attach" or s.server.url, "server.url", "the address of the server to attach to"),
        (s.server.kind != "scripted" or s.server.scenario, "server.scenario", "the scenario to play"),
        (s.server.kind != "tape" or s.server.tape, "server.tape", "the tape to replay"),
        (
            s.agent.external is None or s.agent.time_limit_s is not None,
            "agent.time_limit_s",
            "a number of seconds with agent.external: nothing else ends a program that hangs",
        ),
        (
            s.agent.external is None or not (s.server.kind == "tape" or s.server.record_tape),
            "server.record_tape" if s.server.record_tape else "server",
            "another server than a tape with agent.external: its requests don't go through the client that a tape is in",
        ),
        (not s.protocol.no_repeat or s.protocol.name == "constrained", "protocol.no_repeat", "protocol=constrained"),
    ]
    for holds, key, need in rules:
        if not holds:
            raise SettingsError(f"{key}: needs {need}")


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else str(key)
