from __future__ import annotations

import pytest
from model_things import sha256

from harness.models import ModelError, fetch

BIG = 3 << 20


@pytest.fixture
def content(make_gguf) -> bytes:
    return make_gguf(bytes(range(256)) * (BIG // 256))


@pytest.fixture
def settings(make_settings, server, content):
    server.files["/tiny.gguf"] = content
    source = {"url": f"{server.url}/tiny.gguf"}
    return make_settings({"tiny": {"bytes": len(content), "sha256": sha256(content), "sources": [source]}})


def left(settings) -> set[str]:
    return {path.name for path in settings.folder.iterdir()} - {"tiny.gguf.lock"}


def test_a_whole_download(settings, server, content, told):
    model = fetch("tiny", progress=told, settings=settings)
    assert model.path.read_bytes() == content
    assert (model.sha256, model.bytes, model.trained_window) == (sha256(content), len(content), 4096)
    assert left(settings) == {"tiny.gguf", "tiny.gguf.sha256.json"}
    assert told.steps[-1] == (len(content), len(content))
    fetch("tiny", progress=told, settings=settings)
    assert server.asked == [("/tiny.gguf", None)], "what is here is not fetched again"


def test_a_connection_that_breaks_is_resumed_where_it_broke(settings, server, content, told):
    server.break_after = [1 << 20, 1 << 19]
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == content
    assert server.asked == [
        ("/tiny.gguf", None),
        ("/tiny.gguf", f"bytes={1 << 20}-"),
        ("/tiny.gguf", f"bytes={(1 << 20) + (1 << 19)}-"),
    ]
    assert sum("resuming" in line for line in told.lines) == 2


def test_a_server_that_stops_sending_is_given_up_and_a_later_fetch_goes_on(settings, server, content, told):
    server.break_after = [1 << 20, 0, 0, 0]
    with pytest.raises(ModelError, match="broke 3 times without a new byte"):
        fetch("tiny", progress=told, settings=settings)
    assert left(settings) == {"tiny.gguf.part"}
    server.asked.clear()
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == content
    assert server.asked == [("/tiny.gguf", f"bytes={1 << 20}-")]


def test_a_server_without_ranges_starts_again(settings, server, content, told):
    server.ranges, server.break_after = False, [1 << 20]
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == content


def test_a_whole_part_left_by_a_killed_fetch_is_only_checked(settings, server, content, told):
    settings.folder.mkdir(parents=True)
    (settings.folder / "tiny.gguf.part").write_bytes(content)
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == content
    assert server.asked == []


def test_a_whole_part_of_unknown_length_is_recognised(make_settings, server, content, told):
    server.files["/tiny.gguf"] = content
    settings = make_settings({"tiny": {"sha256": sha256(content), "sources": [{"url": f"{server.url}/tiny.gguf"}]}})
    settings.folder.mkdir(parents=True)
    (settings.folder / "tiny.gguf.part").write_bytes(content)
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == content


def test_a_wrong_digest_is_named_and_the_file_does_not_stay(settings, server, content, told):
    wrong = content[:-1] + b"!"
    server.files["/tiny.gguf"] = wrong
    with pytest.raises(ModelError, match=f"has the sha256 {sha256(wrong)}, not {sha256(content)}; it was deleted"):
        fetch("tiny", progress=told, settings=settings)
    assert left(settings) == set()
    server.files["/tiny.gguf"] = content
    assert fetch("tiny", progress=told, settings=settings).sha256 == sha256(content)


def test_a_wrong_cached_file_is_set_aside_not_lost(settings, content, told):
    wrong = content[:-1] + b"!"
    settings.folder.mkdir(parents=True)
    (settings.folder / "tiny.gguf").write_bytes(wrong)
    assert fetch("tiny", progress=told, settings=settings).sha256 == sha256(content)
    assert (settings.folder / "tiny.gguf.wrong").read_bytes() == wrong
    assert any(sha256(wrong) in line for line in told.lines)


def test_another_length_is_seen_before_the_bytes_are_sent(settings, server, content, told):
    server.files["/tiny.gguf"] = content + b"more"
    with pytest.raises(ModelError, match=f"has {len(content) + 4} bytes, not {len(content)}"):
        fetch("tiny", progress=told, settings=settings)
    assert told.steps == []


def test_the_next_source_goes_on_where_the_first_broke(make_settings, server, content, told):
    server.files["/mirror.gguf"] = content
    server.files["/tiny.gguf"] = content
    server.break_after = [1 << 20, 0, 0, 0]
    sources = [{"url": f"{server.url}/tiny.gguf"}, {"url": f"{server.url}/mirror.gguf"}]
    settings = make_settings({"tiny": {"bytes": len(content), "sha256": sha256(content), "sources": sources}})
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == content
    assert server.asked[-1] == ("/mirror.gguf", f"bytes={1 << 20}-")
    assert sum("falling back to" in line for line in told.lines) == 1


def test_every_source_is_named_when_none_delivers(make_settings, server, told):
    sources = [{"url": f"{server.url}/absent.gguf"}, {"url": "http://127.0.0.1:9/closed.gguf"}]
    settings = make_settings({"tiny": {"sha256": "ab" * 32, "sources": sources}})
    with pytest.raises(ModelError, match=r"HTTP 404 .*; 127\.0\.0\.1:9: ") as caught:
        fetch("tiny", progress=told, settings=settings)
    assert len(str(caught.value).splitlines()) == 1


def test_a_disk_that_is_too_small_is_one_line_before_anything_is_written(make_settings, server, content, told):
    class Endless(bytes):
        def __len__(self) -> int:
            return 10**17

    server.files["/tiny.gguf"] = Endless(content)
    source = {"url": f"{server.url}/tiny.gguf"}
    settings = make_settings({"tiny": {"bytes": 10**17, "sha256": "ab" * 32, "sources": [source]}})
    with pytest.raises(ModelError, match=r"not enough disk space in .*100000000 GB needed"):
        fetch("tiny", progress=told, settings=settings)
    assert left(settings) == set()


def test_a_cache_that_cannot_be_made_is_one_line(make_settings, tmp_path, content, told):
    (tmp_path / "file").write_text("")
    source = {"url": "http://127.0.0.1:9/x"}
    settings = make_settings({"tiny": {"sha256": sha256(content), "sources": [source]}}, folder=tmp_path / "file" / "m")
    with pytest.raises(ModelError, match=r"tiny: Not a directory"):
        fetch("tiny", progress=told, settings=settings)
