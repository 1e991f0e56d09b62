"""Fetching a model: the sources of its entry in order, one announced line for every fallback, and the digest decides.

Beside the final `NAME.gguf` lie, while a fetch goes on or after it broke off: `NAME.gguf.part` (a prefix of the file,
whichever source it came from), `NAME.gguf.wheels/` (parts under way) and `NAME.gguf.lock`. The file appears under its
final name only when it is whole and its digest is right.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

from harness.models.catalogue_file import catalogue
from harness.models.digest import forget, rename, sha256_of
from harness.models.entry import LocalModel, ModelEntry, PackagesSource, PathSource, Source, UrlSource
from harness.models.errors import ModelError, ModelRequestError, SourceFailed
from harness.models.http_download import download_url
from harness.models.local import cached_path, resolve_entry, unknown
from harness.models.lock import exclusive
from harness.models.package_download import download_packages
from harness.models.progress import FetchProgress, stderr_progress
from harness.models.settings import StoreSettings, store_settings
from harness.models.sizes import human_size


def fetch(name: str, *, progress: FetchProgress | None = None, settings: StoreSettings | None = None) -> LocalModel:
    """Make sure the catalogue's model of that name is here, fetching it where it is not.

    A file already here with the right digest is used where it lies. What a broken fetch left is continued.
    Raises ModelRequestError for an unknown name, ModelError when no source delivered the right bytes.
    """
    if progress is None:
        with stderr_progress() as own:
            return fetch(name, progress=own, settings=settings)
    settings = settings or store_settings()
    entries = catalogue(settings)
    if name not in entries:
        raise unknown(name, entries)
    entry = entries[name]
    final = cached_path(entry, settings)
    if (here := _here(entry, settings, progress)) is not None:
        return here
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"{name}: another process is fetching it: waiting for that"
        with exclusive(_beside(final, ".lock"), lambda: progress.say(waiting)):
            if (here := _here(entry, settings, progress)) is not None:
                return here
            _move_wrong_aside(entry, final, settings, progress)
            _from_sources(entry, final, settings, progress)
            return resolve_entry(entry, settings)
    except OSError as error:
        raise ModelError(f"{name}: {error.strerror or error} ({error.filename or final.parent})") from None


def _here(entry: ModelEntry, settings: StoreSettings, progress: FetchProgress) -> LocalModel | None:
    try:
        return resolve_entry(entry, settings, lambda: progress.say(f"{entry.name}: checking the file that is here"))
    except ModelRequestError:
        if all(isinstance(source, PathSource) for source in entry.sources):
            raise
        return None
    except ModelError:
        return None


def _move_wrong_aside(entry: ModelEntry, final: Path, settings: StoreSettings, progress: FetchProgress) -> None:
    if final.exists():
        aside, digest = _beside(final, ".wrong"), sha256_of(final, settings.folder)
        rename(final, aside, settings.folder)
        progress.say(f"{final.name} has the sha256 {digest}, not {entry.sha256}: moved to {aside}")


def _from_sources(entry: ModelEntry, final: Path, settings: StoreSettings, progress: FetchProgress) -> None:
    """Leave the whole, right file at `final`, or raise ModelError with what each source said."""
    part = _beside(final, ".part")
    sources = [source for source in entry.sources if not isinstance(source, PathSource)]
    reasons: list[str] = []
    for source in sources:
        if reasons:
            progress.say(f"{entry.name}: {reasons[-1]}: falling back to {_label(source)}")
        else:
            progress.say(f"{entry.name}: fetching from {_label(source)}")
        try:
            _download(source, entry, part, final, settings, progress)
            _check(entry, part, settings, progress)
        except SourceFailed as failure:
            reasons.append(f"{_label(source)}: {failure}")
            continue
        rename(part, final, settings.folder)
        shutil.rmtree(_beside(final, ".wheels"), ignore_errors=True)
        return
    raise ModelError(f"{entry.name} could not be fetched: {'; '.join(reasons)}")


def _download(
    source: Source, entry: ModelEntry, part: Path, final: Path, settings: StoreSettings, progress: FetchProgress
) -> None:
    if isinstance(source, UrlSource):
        download_url(source.url, part, entry.bytes, entry.name, settings, progress)
    elif isinstance(source, PackagesSource):
        download_packages(source, part, _beside(final, ".wheels"), entry.name, settings, progress)


def _check(entry: ModelEntry, part: Path, settings: StoreSettings, progress: FetchProgress) -> None:
    """Raise SourceFailed, and drop the bytes, when the whole is not the entry's."""
    digest = sha256_of(part, settings.folder, lambda: progress.say(f"{entry.name}: checking the digest"))
    if digest != entry.sha256:
        forget(part, settings.folder)
        part.unlink()
        raise SourceFailed(f"the file has the sha256 {digest}, not {entry.sha256}; it was deleted")


def _label(source: Source) -> str:
    if isinstance(source, UrlSource):
        host = urlsplit(source.url).netloc
        return f"{source.repository} on {host}" if source.repository else host
    if isinstance(source, PackagesSource):
        size = human_size(sum(piece.wheel_bytes for piece in source.parts))
        wheels = "one wheel" if len(source.parts) == 1 else f"{len(source.parts)} wheels"
        return f"the packages on the Python index ({wheels}, {size}, checked against the same digest)"
    return str(source.path)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
