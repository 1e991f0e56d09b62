"""Models that are already here: looking them up by name or path, and judging them by their digest.

Looked at in this order: the model cache (`NAME.gguf`), the user's folders (`NAME.gguf`, then the publisher's file
name), the entry's own paths. The first file with the right digest is the model.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.models.catalogue_file import catalogue
from harness.models.digest import sha256_of, stamped
from harness.models.entry import LocalModel, ModelEntry, PathSource
from harness.models.errors import ModelError, ModelRequestError
from harness.models.gguf import trained_window
from harness.models.settings import StoreSettings, store_settings

_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


def resolve(name_or_path: str | Path, settings: StoreSettings | None = None) -> LocalModel:
    """The model of that name, or the .gguf file at that path, with its digest checked.

    Never fetches. Raises ModelRequestError when it is not here (the line says how to fetch it) and ModelError when the
    file is damaged or is another one than the catalogue's.
    """
    settings = settings or store_settings()
    asked = str(name_or_path)
    entries = catalogue(settings)
    if asked in entries:
        return resolve_entry(entries[asked], settings)
    if asked.endswith(".gguf") or "/" in asked or isinstance(name_or_path, Path):
        return _resolve_path(Path(asked).expanduser().absolute(), entries.values(), settings)
    for folder in settings.model_dirs:
        if (folder / f"{asked}.gguf").is_file():
            return _resolve_path(folder / f"{asked}.gguf", entries.values(), settings)
    raise unknown(asked, entries)


def resolve_entry(entry: ModelEntry, settings: StoreSettings, on_hash: Callable[[], None] | None = None) -> LocalModel:
    """The entry's file, whichever place has the right one. Raises as `resolve` does."""
    wrong: ModelError | None = None
    for path in candidates(entry, settings):
        if path.is_file():
            try:
                return _judge(entry, path, settings, on_hash)
            except ModelError as error:
                wrong = wrong or error
    if wrong is not None:
        raise wrong
    if any(not isinstance(source, PathSource) for source in entry.sources):
        raise ModelRequestError(
            f"the model {entry.name} is not here: fetch it with `calledshot models fetch {entry.name}`"
        )
    places = ", ".join(str(source.path) for source in entry.sources if isinstance(source, PathSource))
    raise ModelRequestError(f"the model {entry.name} is not at {places or settings.folder} (named in {entry.origin})")


def candidates(entry: ModelEntry, settings: StoreSettings) -> list[Path]:
    """The places where the entry's file may lie, best first."""
    paths = [cached_path(entry, settings)]
    for folder in settings.model_dirs:
        paths += [folder / f"{entry.name}.gguf", folder / entry.file]
    return paths + [source.path for source in entry.sources if isinstance(source, PathSource)]


def cached_path(entry: ModelEntry, settings: StoreSettings) -> Path:
    """Where a fetched model is put."""
    return settings.folder / f"{entry.name}.gguf"


def verified(entry: ModelEntry, path: Path, settings: StoreSettings) -> bool | None:
    """Whether the file has the entry's digest, by its stamp and size alone; None when no one has looked yet."""
    if entry.bytes is not None and path.stat().st_size != entry.bytes:
        return False
    found = stamped(path, settings.folder)
    return None if found is None else entry.sha256 in (None, found)


def unknown(asked: str, entries: Iterable[str]) -> ModelRequestError:
    """The error for a name no catalogue has."""
    names = list(entries)
    close = difflib.get_close_matches(asked, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}."
    return ModelRequestError(f"no model is named '{asked}': {hint} A file is given by its path, ending in .gguf")


def _judge(entry: ModelEntry, path: Path, settings: StoreSettings, on_hash: Callable[[], None] | None) -> LocalModel:
    size = path.stat().st_size
    mend = f"fetch it again with `calledshot models fetch {entry.name}`"
    if entry.bytes is not None and size != entry.bytes:
        raise ModelError(f"{path} is damaged: it has {size} bytes, {entry.name} has {entry.bytes}; {mend}")
    digest = _digest(path, settings, on_hash)
    if entry.sha256 is not None and digest != entry.sha256:
        raise ModelError(f"{path} is not {entry.name}: its sha256 is {digest}, not {entry.sha256}; {mend}")
    window = entry.trained_window if entry.trained_window is not None else _window(path)
    return LocalModel(entry.name, path, digest, size, window)


def _resolve_path(path: Path, entries: Iterable[ModelEntry], settings: StoreSettings) -> LocalModel:
    if not path.is_file():
        raise ModelRequestError(f"no model file at {path}")
    if _SPLIT.search(path.name):
        raise ModelRequestError(f"{path} is one piece of a split model: join it with `llama-gguf-split --merge` first")
    window = _window(path)
    digest = _digest(path, settings, None)
    # The same bytes have one name in every table, wherever they lie.
    known = next((entry.name for entry in entries if entry.sha256 == digest), None)
    return LocalModel(known or path.stem, path, digest, path.stat().st_size, window)


def _window(path: Path) -> int | None:
    try:
        return trained_window(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None


def _digest(path: Path, settings: StoreSettings, on_hash: Callable[[], None] | None) -> str:
    try:
        return sha256_of(path, settings.folder, on_hash)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
