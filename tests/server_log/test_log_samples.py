"""The recorded logs: every row exactly, and the real run against the replies its client got."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.server_log import parse, stream, to_json

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.log"))
ERAS = {
    "cancelled-by-client-default-level": "E",
    "hybrid-infill-checkpoint": "C",
    "invalid-batch-500-all-slots": "C",
    "journald-blob-data": "C",
    "llama-swap-docker-prefix": "C",
    "newest-default-truncated": "E",
    "old-json-format": "B",
    "prompt-cache-ram-idle-slots": "D",
    "real-embedded-default": "E",
    "real-embedded-trace": "E",
    "rejected-400-context": "C",
    "release-before-timings": "C",
    "router-child-port-prefix": "D",
    "speculative-eagle-acceptance": "D",
    "swa-parallel-interleaved": "C",
    "tool-parse-500-after-timings": "C",
    "windows-crlf-keyvalue": "B",
}
WRAPPERS = {
    "journald-blob-data": "journald+journald-blob",
    "llama-swap-docker-prefix": "docker-compose+llama-swap",
    "router-child-port-prefix": "router",
    "windows-crlf-keyvalue": "crlf",
}


def expected(path: Path) -> list[dict]:
    return json.loads(path.with_suffix(".expected.json").read_text())["requests"]


def test_all_samples_are_here():
    assert len(SAMPLES) == len(ERAS) == 17


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_rows_era_and_wrapper(path):
    document = to_json(parse(path))
    assert document["requests"] == expected(path)
    assert document["era"] == ERAS[path.stem]
    assert document["wrapper"] == WRAPPERS.get(path.stem, "plain")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_lines_stream_and_path_agree(path):
    from_path = parse(path)
    text = path.read_bytes().decode()
    assert parse(text.splitlines()).requests == from_path.requests
    assert parse(path.read_bytes().splitlines(keepends=True)).requests == from_path.requests
    assert list(stream(str(path))) == from_path.requests


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_utf16_of_a_powershell_redirect(path, tmp_path):
    copy = tmp_path / "server.log"
    copy.write_text(path.read_bytes().decode(), encoding="utf-16", newline="")
    assert parse(copy).requests == parse(path).requests


@pytest.mark.parametrize("kind", ["trace", "default"])
def test_real_run_agrees_with_the_replies(kind):
    samples = Path(__file__).parent / "samples"
    rows = parse(samples / f"real-embedded-{kind}.log").requests
    replies = json.loads((samples / f"real-embedded-{kind}.replies.json").read_text())
    answered = [row for row in rows if row.status == "ok"]
    timings = [reply["timings"] for reply in replies if reply["status"] == 200]
    assert len(answered) == len(timings) > 5
    for row, timing in zip(answered, timings, strict=True):
        assert (row.processed_tokens, row.generated_tokens) == (timing["prompt_n"], timing["predicted_n"])
        reuse = row.cached_tokens if row.cached_tokens is not None else row.cached_tokens_derived
        assert reuse == timing["cache_n"]
        assert row.prompt_ms == pytest.approx(timing["prompt_ms"], abs=0.006)
        assert row.eval_ms == pytest.approx(timing["predicted_ms"], abs=0.006)


def test_facts_for_the_join():
    samples = Path(__file__).parent / "samples"
    hybrid = parse(samples / "hybrid-infill-checkpoint.log")
    assert [row.forced_full for row in hybrid.requests] == [0, 1, 0]
    assert [row.restored_checkpoints for row in hybrid.requests] == [0, 0, 1]
    assert {row.n_ctx for row in hybrid.requests} == {32768}
    https = [
        (event.launched, event.method, event.path, event.status) for event in hybrid.events if event.kind == "http"
    ]
    assert https == [(1, "POST", "/infill", 200), (2, "POST", "/infill", 200)]
    real = parse(samples / "real-embedded-trace.log")
    assert [event.text for event in real.events if event.kind == "build"] == ["b0-unknown"]
    assert [event.status for event in real.events if event.kind == "exception"] == [400]
    structured = parse(samples / "old-json-format.log")
    assert [event.status for event in structured.events if event.kind == "http"] == [200, 200, 503]
