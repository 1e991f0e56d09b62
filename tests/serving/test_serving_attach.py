"""Attaching: what a server tells is used, what it does not tell is None, what does not fit is one line."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import pytest
from answering_server import Answering

from harness.models import LocalModel
from harness.serving.probe import full_probe
from harness.serving.servers import ServingError, open_server, server_build
from harness.settings import ServerSettings

NAMED = LocalModel("coder", Path("coder.gguf"), "", 0, None)
HERE = Path()


def settings(answering: Answering, n_ctx: int = 4096, **more: Any) -> ServerSettings:
    return ServerSettings(kind="attach", n_ctx=n_ctx, url=answering.url, start_timeout_s=5, **more)


def props(n_ctx: int, slots: int = 1) -> dict[str, Any]:
    return {"default_generation_settings": {"n_ctx": n_ctx}, "total_slots": slots, "build_info": "b7000-aaaaaaa"}


def test_a_server_that_tells_nothing_but_its_models(answering: Answering) -> None:
    answering.on("GET", "/v1/models", 200, {"object": "list", "data": [{"id": "gpt-x"}]})
    with open_server(settings(answering), NAMED, HERE) as server:
        assert (server.build, server.n_ctx, server.props, server.pid, server.log) == (None,) * 5
        assert server.cold is False
        assert server.request_extra == {"model": "gpt-x"}
        assert server.erase() is False
    assert server_build(settings(answering)) is None


@pytest.mark.parametrize(
    ("names", "model", "used"), [(["a", "coder"], NAMED, "coder"), (["a", "b"], NAMED, "coder"), (["a"], None, "a")]
)
def test_the_models_name_is_sent(answering: Answering, names: list[str], model: LocalModel | None, used: str) -> None:
    answering.on("GET", "/v1/models", 200, {"data": [{"id": n} for n in names]})
    with open_server(settings(answering), model, HERE) as server:
        assert server.request_extra == {"model": used}


def test_no_name_to_choose_by_is_an_error(answering: Answering) -> None:
    answering.on("GET", "/v1/models", 200, {"data": [{"id": "a"}, {"id": "b"}]})
    with pytest.raises(ServingError, match=r"^model: the server offers a, b; name the one to use$"):
        open_server(settings(answering), None, HERE).__enter__()


def test_a_listed_window_is_compared(answering: Answering) -> None:
    answering.on("GET", "/v1/models", 200, {"data": [{"id": "a", "max_model_len": 8192}]})
    with open_server(settings(answering, 8192), None, HERE) as server:
        assert server.n_ctx == 8192
    with pytest.raises(ServingError, match=r"4096 asked, but the server's window is 8192; set server\.n_ctx=8192$"):
        open_server(settings(answering), None, HERE).__enter__()


def test_a_llama_server_with_several_slots_is_pinned_to_the_emptied_one(answering: Answering) -> None:
    answering.on("GET", "/health", 200, {"status": "ok"})
    answering.on("GET", "/props", 200, props(4096, slots=4))
    answering.on("POST", "/slots/0?action=erase", 200, {"id_slot": 0, "n_erased": 9})
    with open_server(settings(answering), NAMED, HERE) as server:
        assert (server.cold, server.build, server.n_ctx) == (True, "b7000-aaaaaaa", 4096)
        assert server.request_extra == {"id_slot": 0}
    assert server_build(settings(answering)) == "b7000-aaaaaaa"


def test_a_slot_that_can_not_be_emptied_is_recorded_as_warm(answering: Answering) -> None:
    answering.on("GET", "/props", 200, props(4096))
    answering.on("POST", "/slots/0?action=erase", 501, {"error": {"code": 501, "message": "no", "type": "x"}})
    with open_server(settings(answering), NAMED, HERE) as server:
        assert (server.cold, server.request_extra) == (False, {})


def test_a_probe_that_can_not_empty_the_slot_says_that_it_is_warm(answering: Answering, tmp_path: Path) -> None:
    answering.on("GET", "/props", 200, props(4096))
    answering.on("POST", "/slots/0?action=erase", 200, {"n_erased": 1})
    answering.chat(200, {"choices": [{"finish_reason": "stop", "message": {"content": '{"colour": "mauve"}'}}]})
    with open_server(settings(answering), NAMED, HERE) as server:
        assert server.cold is True
        answering.on("POST", "/slots/0?action=erase", 501, {})
        found = full_probe(server, None, tmp_path)
    assert (server.cold, found["cold"]) == (False, False)
    assert found["abilities"] == {
        "chat": True,
        "usage": False,
        "timings": False,
        "reuse_told": False,
        "cache_reuse": None,
        "native_tool_calls": False,
        "json_schema": True,
    }
    assert list(tmp_path.iterdir()) == []  # without the model's digest nothing is kept


def test_nobody_there_is_one_line() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        asked = ServerSettings(kind="attach", n_ctx=4096, url=f"http://127.0.0.1:{s.getsockname()[1]}")
        with pytest.raises(ServingError, match=r"^server\.url: nothing answers at http://127\.0\.0\.1:\d+; .*$"):
            open_server(asked, NAMED, HERE).__enter__()
        with pytest.raises(ServingError, match=r"^server\.url: nothing answers"):
            server_build(asked)


def test_a_refused_key_and_a_model_that_never_loads(answering: Answering) -> None:
    answering.on("GET", "/health", 200, {})
    answering.on("GET", "/props", 401, {"error": {"code": 401, "message": "Invalid API Key", "type": "x"}})
    with pytest.raises(ServingError, match=r"^server\.api_key: .* refuses it \(HTTP 401\); .*$"):
        open_server(settings(answering, api_key="wrong"), NAMED, HERE).__enter__()
    with pytest.raises(ServingError, match=r"^server\.api_key: holds characters"):
        open_server(settings(answering, api_key="a\nb"), NAMED, HERE).__enter__()
    answering.on("GET", "/health", 503, {"error": {"code": 503, "message": "Loading model"}})
    with pytest.raises(ServingError, match=r"still loads its model after 0\.1 s"):
        open_server(dataclasses.replace(settings(answering), start_timeout_s=0.1), NAMED, HERE).__enter__()


@pytest.mark.parametrize(
    ("said", "build"),
    [
        ("version: 10587 (2cbfdf4)\nbuilt with GNU", "b10587-2cbfdf4"),
        ("version: 0.6.0-dev (build 0, commit unknown)\nbuilt with GNU", "b0-unknown"),
        ("version: 0.6.0 (build 10587, commit 2cbfdf4)", "b10587-2cbfdf4"),
        ("hello", None),
    ],
)
def test_a_binary_tells_its_build_without_being_started(said: str, build: str | None, tmp_path: Path) -> None:
    program = tmp_path / "llama-server"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo '{said}' >&2\n")
    program.chmod(0o755)
    assert server_build(ServerSettings(kind="launch", n_ctx=512, binary=str(program))) == build


def test_a_binary_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    asked = ServerSettings(kind="launch", n_ctx=512, binary=str(tmp_path / "none"))
    with pytest.raises(ServingError, match=r"^server\.binary: no .*none there, or it can't be run; .*$"):
        server_build(asked)
