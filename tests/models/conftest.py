"""Fixtures of the models room: a file server, settings with a catalogue of their own, a folder of wheels."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from model_things import FileServer, Told, gguf, sha256

from harness.models import StoreSettings


@pytest.fixture
def server() -> Iterator[FileServer]:
    server = FileServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _no_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip as it is without anyone's configuration, and no settings of the person who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "CALLEDSHOT_", "HF_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., StoreSettings]:
    """Settings with a cache of their own and a catalogue written from plain data."""

    def make(entries: dict[str, Any] | None = None, **more: Any) -> StoreSettings:
        catalogue = tmp_path / "models.yaml"
        catalogue.write_text(yaml.safe_dump(entries or {}))
        return StoreSettings(
            **{"folder": tmp_path / "cache" / "models", "catalogues": (catalogue,), "retry_wait": 0.0, **more}
        )

    return make


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Writes a wheel with one data file into `tmp_path/wheels` and returns its catalogue part.

    The package tells on whoever imports it, and depends on a package that does not exist.
    """
    folder = tmp_path / "wheels"
    folder.mkdir()

    def make(package: str, content: bytes, version: str = "1.0") -> dict[str, Any]:
        module = package.replace("-", "_")
        info = f"{module}-{version}.dist-info"
        member = f"{module}/data/part.bin"
        wheel = folder / f"{module}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{module}/__init__.py", f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
            archive.writestr(member, content)
            metadata = (
                f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: no-such-package-{module}\n"
            )
            archive.writestr(f"{info}/METADATA", metadata)
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        data = wheel.read_bytes()
        return {
            "package": package,
            "version": version,
            "wheel_bytes": len(data),
            "wheel_sha256": sha256(data),
            "member": member,
            "bytes": len(content),
            "sha256": sha256(content),
        }

    return make


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture(scope="session")
def make_gguf() -> Callable[..., bytes]:
    return gguf
