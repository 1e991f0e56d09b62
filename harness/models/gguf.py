"""The one fact of a GGUF header the harness needs: the context length the model was trained for.

Layout (the GGUF specification, versions 2 and 3, little endian): magic, u32 version, u64 tensors, u64 pairs; a pair is
a string key, a u32 type and a value; a string is a u64 length and that many bytes; an array is a u32 type, a u64 count
and the values. The pairs come before the tensors, so a few kilobytes are read, at most the tokenizer's vocabulary.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from harness.models.errors import ModelError

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_LONGEST_STRING = 1 << 24
_LONGEST_ARRAY = 1 << 32
_DEEPEST_ARRAY = 4


def trained_window(path: Path) -> int | None:
    """The `<architecture>.context_length` of a GGUF file in tokens, None where the header has none.

    Raises ModelError when the file is not a readable GGUF file, OSError when it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path}: not a GGUF file (llama.cpp's model format)")
        try:
            return _context_length(file)
        except (struct.error, ValueError) as error:
            raise ModelError(f"{path}: the GGUF header is damaged ({error})") from None


def _context_length(file: BinaryIO) -> int | None:
    version, _tensors, pairs = struct.unpack("<IQQ", file.read(20))
    if version not in (2, 3):
        raise ValueError(f"version {version}, known are 2 and 3")
    architecture: str | None = None
    lengths: dict[str, int] = {}
    for _ in range(pairs):
        key = _string(file).decode("utf-8", "replace")
        (kind,) = struct.unpack("<I", file.read(4))
        value = _value(file, kind)
        if key == "general.architecture" and isinstance(value, bytes):
            architecture = value.decode("utf-8", "replace")
        elif key.endswith(".context_length") and isinstance(value, int):
            lengths[key] = value
        # Stops before the vocabulary, which is the long part of a header.
        if architecture is not None and f"{architecture}.context_length" in lengths:
            return lengths[f"{architecture}.context_length"]
    return None


def _value(file: BinaryIO, kind: int, depth: int = 0) -> int | float | bool | bytes | None:
    if kind in _SCALARS:
        return _scalar(file, _SCALARS[kind])
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY and depth < _DEEPEST_ARRAY:
        inner, count = struct.unpack("<IQ", file.read(12))
        if inner in _SCALARS:
            if count > _LONGEST_ARRAY:
                raise ValueError(f"an array of {count} values")
            file.seek(struct.calcsize(_SCALARS[inner]) * count, 1)
            return None
        for _ in range(count):
            _value(file, inner, depth + 1)
        return None
    raise ValueError(f"unknown value type {kind}")


def _scalar(file: BinaryIO, layout: str) -> int | float | bool:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))[0]


def _string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _LONGEST_STRING:
        raise ValueError(f"a string of {length} bytes")
    text = file.read(length)
    if len(text) < length:
        raise ValueError("it ends inside a string")
    return text
