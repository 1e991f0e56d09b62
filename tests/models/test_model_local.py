from __future__ import annotations

import os
from pathlib import Path

import pytest
from model_things import sha256

from harness.models import LocalModel, ModelError, ModelRequestError, resolve


def entry(content: bytes, **more):
    return {
        "file": "Tiny-Q4.gguf",
        "bytes": len(content),
        "sha256": sha256(content),
        "sources": [{"url": "http://127.0.0.1:9/Tiny-Q4.gguf"}],
        **more,
    }


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_cached_model_by_name(make_settings, make_gguf):
    content = make_gguf(b"weights")
    settings = make_settings({"tiny": entry(content)})
    path = put(settings.folder / "tiny.gguf", content)
    assert resolve("tiny", settings) == LocalModel("tiny", path, sha256(content), len(content), 4096)


def test_the_catalogues_window_wins_over_the_headers(make_settings, make_gguf):
    content = make_gguf(window=None)
    settings = make_settings({"tiny": entry(content, trained_window=1024)})
    put(settings.folder / "tiny.gguf", content)
    assert resolve("tiny", settings).trained_window == 1024


@pytest.mark.parametrize("name", ["tiny.gguf", "Tiny-Q4.gguf"])
def test_a_model_in_the_users_folder_is_used_where_it_lies_and_nothing_is_written_there(
    make_settings, make_gguf, tmp_path, name
):
    content = make_gguf()
    path = put(tmp_path / "mine" / name, content)
    settings = make_settings({"tiny": entry(content)}, model_dirs=(tmp_path / "mine",))
    assert resolve("tiny", settings).path == path
    assert tree(tmp_path / "mine") == {name}


def test_a_wrong_cached_file_gives_way_to_a_right_one_elsewhere(make_settings, make_gguf, tmp_path):
    content = make_gguf()
    settings = make_settings({"tiny": entry(content)}, model_dirs=(tmp_path / "mine",))
    put(settings.folder / "tiny.gguf", content[:-1])
    path = put(tmp_path / "mine" / "tiny.gguf", content)
    assert resolve("tiny", settings).path == path


def test_a_missing_model_says_how_to_fetch_it(make_settings, make_gguf):
    with pytest.raises(ModelRequestError, match=r"tiny is not here: fetch it with `calledshot models fetch tiny`"):
        resolve("tiny", make_settings({"tiny": entry(make_gguf())}))


def test_an_unknown_name_offers_the_nearest(make_settings):
    with pytest.raises(ModelRequestError, match=r"'smollm-135m': did you mean smollm2-135m\?"):
        resolve("smollm-135m", make_settings())
    with pytest.raises(ModelRequestError, match=r"known are qwen2\.5-coder-1\.5b, "):
        resolve("zzz", make_settings())


def test_a_file_of_another_size_or_digest_is_told_apart(make_settings, make_gguf):
    content = make_gguf(b"weights")
    settings = make_settings({"tiny": entry(content)})
    path = put(settings.folder / "tiny.gguf", content[:-2])
    with pytest.raises(ModelError, match=f"is damaged: it has {len(content) - 2} bytes"):
        resolve("tiny", settings)
    other = make_gguf(b"weightz")
    path.write_bytes(other)
    with pytest.raises(ModelError, match=f"its sha256 is {sha256(other)}, not {sha256(content)}") as caught:
        resolve("tiny", settings)
    assert not isinstance(caught.value, ModelRequestError)


def test_the_digest_is_kept_until_size_or_time_change(make_settings, make_gguf):
    content, other = make_gguf(b"weights"), make_gguf(b"weightz")
    settings = make_settings({"tiny": entry(content)})
    path = put(settings.folder / "tiny.gguf", content)
    resolve("tiny", settings)
    state = path.stat()
    path.write_bytes(other)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert resolve("tiny", settings).sha256 == sha256(content), "the same size and time: the file is not read again"
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    with pytest.raises(ModelError, match=sha256(other)):
        resolve("tiny", settings)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"size": 1}', b"\xff"])
def test_a_damaged_stamp_is_made_anew(make_settings, make_gguf, damage):
    content = make_gguf()
    settings = make_settings({"tiny": entry(content)})
    put(settings.folder / "tiny.gguf", content)
    resolve("tiny", settings)
    stamp = settings.folder / "tiny.gguf.sha256.json"
    good = stamp.read_bytes()
    stamp.write_bytes(damage)
    assert resolve("tiny", settings).sha256 == sha256(content)
    assert stamp.read_bytes() == good


def test_any_gguf_by_path_has_its_digest_computed(make_settings, make_gguf, tmp_path, monkeypatch):
    content = make_gguf(window=2048)
    path = put(tmp_path / "mine" / "other.gguf", content)
    settings = make_settings()
    expected = LocalModel("other", path, sha256(content), len(content), 2048)
    assert resolve(path, settings) == resolve(str(path), settings) == expected
    monkeypatch.chdir(path.parent)
    assert resolve("other.gguf", settings) == expected
    assert tree(path.parent) == {"other.gguf"}


def test_the_same_bytes_have_the_catalogues_name(make_settings, make_gguf, tmp_path):
    content = make_gguf()
    path = put(tmp_path / "renamed.gguf", content)
    assert resolve(path, make_settings({"tiny": entry(content)})).name == "tiny"


def test_a_file_of_the_users_folder_by_its_bare_name(make_settings, make_gguf, tmp_path):
    path = put(tmp_path / "mine" / "own.gguf", make_gguf())
    assert resolve("own", make_settings(model_dirs=(tmp_path / "mine",))).path == path


def test_a_users_entry_by_path_needs_no_digest(make_settings, make_gguf, tmp_path):
    content = make_gguf()
    settings = make_settings({"own": {"sources": [{"path": "files/x.gguf"}]}})
    with pytest.raises(ModelRequestError, match=r"own is not at .*files/x\.gguf \(named in .*models\.yaml\)"):
        resolve("own", settings)
    put(tmp_path / "files" / "x.gguf", content)
    assert resolve("own", settings).sha256 == sha256(content)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gone.gguf", None, "no model file at"),
        ("big-00001-of-00003.gguf", b"GGUF", "one piece of a split model"),
        ("notes.gguf", b"hello", "not a GGUF file"),
    ],
)
def test_paths_that_are_no_model(make_settings, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=says):
        resolve(tmp_path / name, make_settings())
