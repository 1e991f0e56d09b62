from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.models import ModelRequestError, catalogue, store_settings
from harness.models.catalogue_file import read_catalogue
from harness.models.entry import PackagesSource, PathSource, UrlSource
from harness.models.settings import DEFAULT_HUB

SHA = "ab" * 32

# From the project's shared notes: sizes and digests of the publishers' files.
KNOWN = {
    "qwen2.5-coder-1.5b": (1117320768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", 22, 32768),
    "qwen2.5-coder-0.5b": (491400064, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", 6, 32768),
    "smollm2-135m": (98362432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 1, 8192),
}


def test_the_packages_own_models(make_settings):
    entries = catalogue(make_settings())
    assert set(entries) == set(KNOWN)
    for name, (size, digest, parts, window) in KNOWN.items():
        entry = entries[name]
        assert (entry.bytes, entry.sha256, entry.trained_window, entry.licence) == (size, digest, window, "Apache-2.0")
        publisher, packages = entry.sources
        assert isinstance(publisher, UrlSource)
        assert publisher.url.startswith(f"{DEFAULT_HUB}/{entry.publisher}/resolve/")
        assert publisher.url.endswith(f"/{entry.file}")
        assert isinstance(packages, PackagesSource)
        assert len(packages.parts) == parts
        assert sum(part.bytes for part in packages.parts) == size


def test_a_mirror_of_the_hub_is_used(make_settings):
    entry = catalogue(make_settings(hub="http://mirror.example/"))["smollm2-135m"]
    assert entry.sources[0].url.startswith("http://mirror.example/QuantFactory/")


def test_user_catalogues_of_the_study_and_of_the_environment(tmp_path: Path):
    study = tmp_path / "study"
    (study / "conf").mkdir(parents=True)
    (study / "conf" / "models.yaml").write_text("mine: {sources: [{path: ../files/mine.gguf}]}\n")
    other = tmp_path / "other.yaml"
    other.write_text(f"theirs: {{sha256: {SHA}, sources: [{{url: 'http://127.0.0.1/x.gguf'}}]}}\n")
    entries = catalogue(store_settings(study, {"CALLEDSHOT_MODELS": str(other), "HOME": str(tmp_path)}))
    assert set(entries) == {*KNOWN, "mine", "theirs"}
    assert entries["mine"].sources == (PathSource(study / "conf" / "../files/mine.gguf"),)
    assert entries["mine"].file == "mine.gguf"


def test_a_known_name_takes_other_sources_but_no_other_digest(make_settings):
    size, digest, _, _ = KNOWN["smollm2-135m"]
    mirror = {"bytes": size, "sha256": digest, "sources": [{"url": "http://127.0.0.1/mirror.gguf"}]}
    entries = catalogue(make_settings({"smollm2-135m": mirror}))
    assert entries["smollm2-135m"].sources == (UrlSource("http://127.0.0.1/mirror.gguf"),)
    with pytest.raises(ModelRequestError, match="smollm2-135m: the name stands for another digest"):
        catalogue(make_settings({"smollm2-135m": {**mirror, "sha256": SHA}}))


PART = {"package": "p", "version": "1", "wheel_bytes": 1, "wheel_sha256": SHA, "member": "m", "bytes": 1, "sha256": SHA}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"sources": [{"url": "http://h/x"}]}, "sha256 is missing"),
        ({"sha256": SHA.upper(), "sources": []}, "sha256 must be 64 lower-case hex digits"),
        ({"sha256": SHA, "sources": [{"url": "ftp://h/x"}]}, r"sources\[0\].url must begin with http"),
        ({"sha256": SHA, "sources": [{"url": "http://h/x", "path": "x"}]}, r"sources\[0\] needs exactly one of"),
        ({"sha256": SHA, "bytes": True}, "bytes must be a whole number above 0"),
        ({"sha256": SHA, "bytes": -1}, "bytes must be a whole number above 0"),
        ({"file": "../x.gguf"}, "must be a bare file name"),
        ({"licence": 2.0}, "licence must be text"),
        ({"digest": SHA}, "digest is not a key here"),
        ("a string", "the entry must be a mapping"),
        ({"sha256": SHA, "bytes": 2, "sources": [{"packages": [PART]}]}, "bytes is not the sum"),
        (
            {"sha256": SHA, "sources": [{"packages": [{**PART, "version": "1\n--index-url x"}]}]},
            "not an exact requirement",
        ),
        ({"sha256": SHA, "sources": [{"packages": [{**PART, "wheel_sha256": None}]}]}, "wheel_sha256 is missing"),
    ],
)
def test_a_faulty_entry_is_named_with_its_file(make_settings, entry, says):
    settings = make_settings({"odd": entry})
    with pytest.raises(ModelRequestError, match=says) as caught:
        catalogue(settings)
    assert str(caught.value).startswith(f"{settings.catalogues[0]}: odd: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe", b"- a list", b"../up: {}", b"1: {}"])
def test_a_file_that_is_no_catalogue(tmp_path: Path, content: bytes):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ModelRequestError, match=r"bad\.yaml") as caught:
        read_catalogue(path, DEFAULT_HUB)
    assert len(str(caught.value).splitlines()) == 1


def test_a_catalogue_that_is_not_there(tmp_path: Path):
    with pytest.raises(ModelRequestError, match=r"gone\.yaml: the catalogue cannot be read"):
        catalogue(store_settings(tmp_path, {"CALLEDSHOT_MODELS": str(tmp_path / "gone.yaml")}))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(SHA),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["sources", "path", "url", "packages", "huggingface", "revision", "file", "sha256", "bytes"]
            )
            | st.sampled_from(sorted(PART))
            | st.integers(0, 2)
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(plain)
def test_any_yaml_gives_entries_or_one_error(tmp_path_factory: pytest.TempPathFactory, body):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump({"m": body}))
    try:
        entries = read_catalogue(path, DEFAULT_HUB)
    except ModelRequestError as error:
        said = str(error)
    else:
        assert list(entries) == ["m"]
        return
    assert said.startswith(f"{path}: ")
    assert len(said.splitlines()) == 1
