"""The catalogue: entries as YAML, the package's own and the user's, read and checked once.

A catalogue file is a mapping from model name to
`{file, quantisation, bytes, sha256, licence, publisher, trained_window, sources}`; `sources` is a list of
`{path: FILE}` (relative to the catalogue file), `{huggingface: REPOSITORY, revision: REV}`, `{url: URL}` and
`{packages: [{package, version, wheel_bytes, wheel_sha256, member, bytes, sha256}, …]}`, tried in the order given.
A file that is already in the cache or in a folder of the user's comes before all of them. Only an entry whose sources
are all paths may leave the digest out. A user's entry may give a known model other sources, never another digest.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from harness.models.entry import ModelEntry, PackagesSource, PathSource, Source, UrlSource, WheelPart
from harness.models.errors import ModelRequestError
from harness.models.settings import StoreSettings, store_settings

PACKAGED = Path(__file__).with_name("models.yaml")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ENTRY_KEYS = {"file", "quantisation", "bytes", "sha256", "licence", "publisher", "trained_window", "sources"}
_PART_KEYS = {"package", "version", "wheel_bytes", "wheel_sha256", "member", "bytes", "sha256"}


def catalogue(settings: StoreSettings | None = None) -> dict[str, ModelEntry]:
    """All known models by name: the package's, then those of the user's catalogue files.

    Raises ModelRequestError naming the file and the key that is wrong.
    """
    settings = settings or store_settings()
    entries = read_catalogue(PACKAGED, settings.hub)
    for path in settings.catalogues:
        for name, entry in read_catalogue(path, settings.hub).items():
            known = entries.get(name)
            if known is not None and known.sha256 != entry.sha256:
                raise ModelRequestError(
                    f"{path}: {name}: the name stands for another digest in {known.origin}: choose another name"
                )
            entries[name] = entry
    return entries


def read_catalogue(path: Path, hub: str) -> dict[str, ModelEntry]:
    """The entries of one catalogue file. Raises ModelRequestError with one line."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelRequestError(f"{path}: the catalogue cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ModelRequestError(f"{path}: not a text file in UTF-8") from None
    except yaml.YAMLError as error:
        raise ModelRequestError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ModelRequestError(f"{path}: a catalogue is a mapping from model name to entry")
    return {name: _Reader(path, hub, str(name)).entry(name, body) for name, body in raw.items()}


class _Reader:
    """Reads one entry; every error names the file and the place in it."""

    def __init__(self, path: Path, hub: str, place: str) -> None:
        self.path, self.hub, self.place = path, hub.rstrip("/"), place

    def entry(self, name: Any, body: Any) -> ModelEntry:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self.wrong("a model's name is made of letters, digits, '.', '_' and '-'")
        body = self.mapping(body, _ENTRY_KEYS, "")
        file = self.text(body, "file", default=f"{name}.gguf")
        if Path(file).name != file:
            raise self.wrong(f"file: '{file}' must be a bare file name")
        items = body.get("sources", [])
        if not isinstance(items, list):
            raise self.wrong("sources must be a list")
        sources = tuple(self.source(item, file, f"sources[{i}]") for i, item in enumerate(items))
        entry = ModelEntry(
            name=name,
            file=file,
            sources=sources,
            origin=self.path,
            quantisation=self.text(body, "quantisation"),
            bytes=self.count(body, "bytes"),
            sha256=self.digest(body, "sha256"),
            licence=self.text(body, "licence"),
            publisher=self.text(body, "publisher"),
            trained_window=self.count(body, "trained_window"),
        )
        self.check(entry)
        return entry

    def check(self, entry: ModelEntry) -> None:
        for source in entry.sources:
            if not isinstance(source, PathSource) and entry.sha256 is None:
                raise self.wrong("sha256 is missing: only a model whose sources are all paths can do without")
            if isinstance(source, PackagesSource) and entry.bytes != sum(part.bytes for part in source.parts):
                raise self.wrong("bytes is not the sum of the bytes of the packages' parts")

    def source(self, item: Any, file: str, where: str) -> Source:
        kinds = {"path", "huggingface", "url", "packages"} & set(item if isinstance(item, dict) else ())
        if len(kinds) != 1:
            raise self.wrong(f"{where} needs exactly one of path, huggingface, url, packages")
        (kind,) = kinds
        body = self.mapping(item, {kind, "revision"} if kind == "huggingface" else {kind}, where)
        if kind == "packages":
            if not isinstance(body[kind], list) or not body[kind]:
                raise self.wrong(f"{where}.packages must be a list of parts")
            return PackagesSource(tuple(self.part(p, f"{where}.packages[{i}]") for i, p in enumerate(body[kind])))
        value = self.text(body, kind, where, required=True)
        if kind == "path":
            return PathSource((self.path.parent / Path(value).expanduser()).absolute())
        if kind == "huggingface":
            revision = self.text(body, "revision", where, default="main")
            return UrlSource(f"{self.hub}/{value}/resolve/{revision}/{file}", repository=value)
        if not value.startswith(("http://", "https://")):
            raise self.wrong(f"{where}.url must begin with http:// or https://")
        return UrlSource(value)

    def part(self, item: Any, where: str) -> WheelPart:
        body = self.mapping(item, _PART_KEYS, where)
        part = WheelPart(
            package=self.text(body, "package", where, required=True),
            version=self.text(body, "version", where, required=True),
            wheel_bytes=self.count(body, "wheel_bytes", where, required=True),
            wheel_sha256=self.digest(body, "wheel_sha256", where, required=True),
            member=self.text(body, "member", where, required=True),
            bytes=self.count(body, "bytes", where, required=True),
            sha256=self.digest(body, "sha256", where, required=True),
        )
        # Both go into a requirement line for pip.
        if not _NAME.fullmatch(part.package) or not _VERSION.fullmatch(part.version):
            raise self.wrong(f"{where}: '{part.package}=={part.version}' is not an exact requirement")
        return part

    def mapping(self, body: Any, keys: set[str], where: str) -> dict[str, Any]:
        if not isinstance(body, dict):
            raise self.wrong(f"{where or 'the entry'} must be a mapping")
        if unknown := sorted(str(key) for key in body if key not in keys):
            raise self.wrong(f"{where + '.' if where else ''}{unknown[0]} is not a key here: {', '.join(sorted(keys))}")
        return body

    def text(self, body: dict, key: str, where: str = "", *, default: str | None = None, required=False) -> Any:
        value = self.value(body, key, where, required)
        if value is None:
            return default
        if not isinstance(value, str) or not value:
            raise self.wrong(f"{where + '.' if where else ''}{key} must be text (put it in quotes)")
        return value

    def count(self, body: dict, key: str, where: str = "", *, required: bool = False) -> Any:
        value = self.value(body, key, where, required)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise self.wrong(f"{where + '.' if where else ''}{key} must be a whole number above 0")
        return value

    def digest(self, body: dict, key: str, where: str = "", *, required: bool = False) -> Any:
        value = self.text(body, key, where, required=required)
        if value is not None and not _SHA256.fullmatch(value):
            raise self.wrong(f"{where + '.' if where else ''}{key} must be 64 lower-case hex digits")
        return value

    def value(self, body: dict, key: str, where: str, required: bool) -> Any:
        if required and body.get(key) is None:
            raise self.wrong(f"{where + '.' if where else ''}{key} is missing")
        return body.get(key)

    def wrong(self, what: str) -> ModelRequestError:
        # Names and keys of a faulty file may hold line breaks; the error is one line.
        return ModelRequestError(f"{self.path}: {' '.join(f'{self.place}: {what}'.split())}")
