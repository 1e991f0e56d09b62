"""The real llama.cpp server: started, read back, asked, ended. The smallest model, one thread, a handful of tokens."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.replay.slot import common_prefix
from harness.models import LocalModel
from harness.serving.outcome import ChatRequest, Cut, Overflow, Reply, ServerError
from harness.serving.probe import facts, full_probe
from harness.serving.running import RunningServer
from harness.serving.servers import ServingError, open_server, server_build
from harness.settings import ServerSettings

pytestmark = pytest.mark.real
ASK = ChatRequest([{"role": "user", "content": "Count to three."}], seed=1, temperature=0.0, max_tokens=2)


def gone(pid: int) -> bool:
    """Whether the process has ended; a zombie that nobody has reaped yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_gone(pid: int) -> bool:
    end = time.monotonic() + 20
    while not gone(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return gone(pid)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, small_model: LocalModel) -> Iterator[RunningServer]:
    settings = ServerSettings(kind="embedded", n_ctx=256, threads=1, record_tape=True, record_tokens=True)
    with open_server(settings, small_model, tmp_path_factory.mktemp("run")) as server:
        yield server


def test_it_is_what_was_asked(running: RunningServer) -> None:
    assert running.n_ctx == 256
    assert running.build == server_build(ServerSettings(kind="embedded", n_ctx=256))
    assert running.cold is True
    assert "n_ctx=256" in running.flags
    assert "cache_ram_mib=0" in running.flags
    assert not any("port" in flag for flag in running.flags)


def test_the_same_request_twice_reuses_all_but_one_token_and_erase_forgets(running: RunningServer) -> None:
    client = running.client()
    assert running.erase()
    reuse = []
    for _ in range(2):
        cut = client.chat(ASK)
        assert isinstance(cut, Cut)
        assert cut.kind == "limit"
        assert cut.timings is not None
        assert cut.usage is not None
        reuse.append((cut.timings.cache_n, cut.timings.prompt_n, cut.usage.prompt_tokens))
    prompt = reuse[0][2]
    assert prompt is not None
    assert reuse == [(0, prompt, prompt), (prompt - 1, 1, prompt)]
    assert running.erase()
    cut = client.chat(ASK)
    assert isinstance(cut, Cut)
    assert cut.timings is not None
    assert cut.timings.cache_n == 0


def test_the_tokens_it_tells_are_those_that_the_next_prompt_meets(running: RunningServer) -> None:
    """Under a grammar above all: there a reply need not be written in the tokens that its text would be read in."""
    client, number = running.client(), {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ask = [{"role": "user", "content": "Name a number."}]
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": number}}
    extra = dict(running.request_extra) | {"response_format": form}
    assert running.erase()
    held: list[int] = []
    for seed in range(3):
        prompt = client.tokenize(client.apply_template(ask) or "")
        assert prompt is not None
        outcome = client.chat(ChatRequest(ask, seed, 1.5, max_tokens=30, extra=extra))
        assert isinstance(outcome, (Reply, Cut))
        assert outcome.timings is not None
        assert outcome.tokens is not None
        assert outcome.message is not None
        assert len(outcome.tokens) == outcome.timings.predicted_n
        assert outcome.timings.cache_n == min(common_prefix(prompt, held), len(prompt) - 1)
        held = [*prompt, *outcome.tokens[:-1]]
        ask = [
            *ask,
            {"role": "assistant", "content": outcome.message.content or ""},
            {"role": "user", "content": "More."},
        ]


def test_the_log_shows_prompt_size_and_reuse(running: RunningServer) -> None:
    running.client().chat(ASK)
    assert running.log is not None
    text = running.log.read_text()
    assert "new prompt, n_ctx_slot = 256" in text
    assert "memory_seq_rm" in text


def test_a_reply_that_fills_the_window_is_cut_by_the_window(running: RunningServer) -> None:
    filler = {"role": "user", "content": "word " * 205 + "go on"}
    cut = running.client().chat(
        dataclasses.replace(ASK, messages=[filler], max_tokens=None, extra={"ignore_eos": True})
    )
    assert isinstance(cut, Cut)
    assert cut.kind == "window"
    assert cut.usage is not None
    assert cut.usage.total_tokens == 256


def test_a_request_larger_than_the_window_is_an_overflow(running: RunningServer) -> None:
    outcome = running.client().chat(dataclasses.replace(ASK, messages=[{"role": "user", "content": "word " * 300}]))
    assert isinstance(outcome, Overflow)
    assert (outcome.status, outcome.n_ctx) == (400, 256)
    assert outcome.prompt_tokens is not None
    assert outcome.prompt_tokens > 300


def test_tokenizer_template_and_memory(running: RunningServer) -> None:
    client = running.client()
    tokens = client.tokenize("hello <|im_end|>")
    assert tokens is not None
    assert len(tokens) == len(client.tokenize("hello ") or []) + 1  # the special token is one
    template = client.apply_template(ASK.messages)
    assert template is not None
    assert "Count to three." in template
    assert client.health() == 200
    assert [s["n_ctx"] for s in client.slots() or []] == [256]
    assert (running.peak_memory()["resident_bytes"] or 0) > 50_000_000


def test_the_probe_touches_nothing_and_the_full_one_is_asked_once(running: RunningServer, tmp_path: Path) -> None:
    running.erase()
    known = facts(running, "digest", tmp_path)
    assert (known["n_ctx"], known["tokenize"], known["apply_template"], known["slots"]) == (256, True, True, True)
    assert (known["architecture"], known["trained_window"], known["sliding_window"]) == ("llama", 8192, 0)
    assert (known["reasoning_kept"], known["abilities"]) == (False, None)
    cut = running.client().chat(ASK)
    assert isinstance(cut, Cut)
    assert cut.timings is not None
    assert cut.timings.cache_n == 0  # the slot was still empty

    asked: list[ChatRequest] = []
    found = full_probe(running, "digest", tmp_path, lambda request, outcome: asked.append(request))
    assert {r.tag for r in asked} == {"probe"}
    assert found["cached"] is False
    assert found["abilities"]["timings"] is True
    assert found["abilities"]["cache_reuse"] is True
    assert found["abilities"]["json_schema"] is True
    assert running.cold is True
    cut = running.client().chat(ASK)
    assert isinstance(cut, Cut)
    assert cut.timings is not None
    assert cut.timings.cache_n == 0  # emptied again

    count = len(asked)
    again = full_probe(running, "digest", tmp_path, lambda request, outcome: asked.append(request))
    assert (again["cached"], again["abilities"], len(asked)) == (True, found["abilities"], count)
    assert facts(running, "digest", tmp_path)["abilities"] == found["abilities"]
    assert facts(running, "another", tmp_path)["abilities"] is None


def test_attached_it_is_emptied_first_and_left_running(running: RunningServer) -> None:
    running.client().chat(ASK)
    settings = ServerSettings(kind="attach", n_ctx=256, url=running.base_url)
    with open_server(settings, None, Path()) as attached:
        assert (attached.n_ctx, attached.cold, attached.pid) == (256, True, None)
        assert attached.peak_memory() == {"resident_bytes": None, "gpu_bytes": None}
        cut = attached.client().chat(ASK)
        assert isinstance(cut, Cut)
        assert cut.timings is not None
        assert cut.timings.cache_n == 0
    assert running.client().health() == 200
    with pytest.raises(ServingError, match=r"server\.n_ctx: 512 asked, but the server's window is 256"):
        open_server(dataclasses.replace(settings, n_ctx=512), None, Path()).__enter__()


def test_the_tape_of_it_replays_without_it(running: RunningServer, tmp_path: Path) -> None:
    assert running.log is not None
    settings = ServerSettings(kind="embedded", n_ctx=256, threads=1)
    attached = dataclasses.replace(settings, kind="attach", url=running.base_url, record_tape=True)
    asks = [ASK, dataclasses.replace(ASK, messages=[{"role": "user", "content": "word " * 300}])]
    with open_server(attached, None, tmp_path) as server:
        recorded = [server.client().chat(a) for a in asks] + [server.client().tokenize("x")]
    with open_server(dataclasses.replace(settings, kind="tape", tape=str(tmp_path)), None, tmp_path) as server:
        assert (server.kind, server.n_ctx) == ("tape", 256)
        replayed = [server.client().chat(a) for a in asks] + [server.client().tokenize("x")]
    assert replayed == recorded  # milliseconds included


def test_a_server_that_dies_is_a_server_error(
    tmp_path: Path, small_model: LocalModel, embedded_settings: ServerSettings
) -> None:
    with open_server(embedded_settings, small_model, tmp_path) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        outcome = server.client().chat(ASK)
        assert isinstance(outcome, ServerError)
        assert outcome.kind == "connect"
    assert gone(server.pid)


def test_an_exception_ends_it(tmp_path: Path, small_model: LocalModel, embedded_settings: ServerSettings) -> None:
    with pytest.raises(KeyboardInterrupt), open_server(embedded_settings, small_model, tmp_path) as server:
        raise KeyboardInterrupt
    assert server.pid is not None
    assert gone(server.pid)
    assert (server.peak_memory()["resident_bytes"] or 0) > 50_000_000  # still known


PARENT = """
import sys, time
from pathlib import Path
from harness.models import resolve
from harness.serving.servers import open_server
from harness.settings import ServerSettings
settings = ServerSettings(kind=sys.argv[1], n_ctx=256, threads=1, binary=sys.argv[3] or None)
with open_server(settings, resolve("smollm2-135m"), Path(sys.argv[2])) as server:
    print(server.pid, flush=True)
    time.sleep(30)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("kind", ["embedded", "launch"])
def test_it_ends_with_a_harness_that_is_killed(
    kind: str, tmp_path: Path, binary: Path, small_model: LocalModel
) -> None:
    argv = [sys.executable, "-c", PARENT, kind, str(tmp_path), str(binary)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    assert wait_gone(pid)


def test_a_taken_port_a_missing_file_and_a_broken_one(
    tmp_path: Path, small_model: LocalModel, broken_model: LocalModel, embedded_settings: ServerSettings
) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        taken = s.getsockname()[1]
        with pytest.raises(ServingError, match=rf"^server\.port: {taken} is taken; .*$"):
            open_server(dataclasses.replace(embedded_settings, port=taken), small_model, tmp_path).__enter__()
    missing = dataclasses.replace(small_model, path=tmp_path / "none.gguf")
    with pytest.raises(ServingError, match=r"^model: .*none\.gguf is no file; .*$"):
        open_server(embedded_settings, missing, tmp_path).__enter__()
    with pytest.raises(ServingError, match=r"^the embedded server ended while starting .*failed to load model.*$"):
        open_server(embedded_settings, broken_model, tmp_path).__enter__()
    extra = dataclasses.replace(embedded_settings, extra_args=("no_such_field=1",))
    with pytest.raises(ServingError, match=r"^the embedded server ended.*does not take no_such_field=1.*$"):
        open_server(extra, small_model, tmp_path).__enter__()


def test_another_window_than_the_asked_one_does_not_start(
    tmp_path: Path, small_model: LocalModel, embedded_settings: ServerSettings
) -> None:
    with pytest.raises(ServingError, match=r"^server\.n_ctx: 300 asked, but the server's window is 512; .*=512$"):
        open_server(dataclasses.replace(embedded_settings, n_ctx=300), small_model, tmp_path).__enter__()


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    program = Path(__file__).with_name("standin_llama_server.py")
    path = tmp_path / "llama-server"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_binary_is_launched_with_the_flags(tmp_path: Path, binary: Path, small_model: LocalModel) -> None:
    settings = ServerSettings(kind="launch", n_ctx=256, threads=1, binary=str(binary))
    assert server_build(settings) == "b10587-2cbfdf4"
    with open_server(settings, small_model, tmp_path) as server:
        assert server.n_ctx == 256
        assert server.erase()
        cut = server.client().chat(ASK)
        assert isinstance(cut, Cut)
        assert server.pid is not None
    assert gone(server.pid)
    assert server.log is not None
    assert "new prompt" in server.log.read_text()


def test_a_flag_that_an_older_binary_refuses_is_named(tmp_path: Path, binary: Path, small_model: LocalModel) -> None:
    settings = ServerSettings(kind="launch", n_ctx=256, binary=str(binary), cache_reuse=64)
    with pytest.raises(ServingError, match=r"^server\.binary: this llama-server does not know --cache-reuse; .*$"):
        open_server(settings, small_model, tmp_path).__enter__()
