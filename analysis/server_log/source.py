"""Where lines come from: a path, or any iterable of lines, as blocks of whole lines in bounded memory.

Contract: a block ends where a line ends. A last line without its line end comes as a block of its own with
``whole=False``: the writer may have been cut off in the middle of a number.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from analysis.server_log.errors import LogError
from analysis.server_log.notes import Notes

BLOCK = 1 << 20
LONGEST_LINE = 1 << 20
LINES = 4096

Source = str | os.PathLike[str] | Iterable[str] | Iterable[bytes]

PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip"}


class Block(NamedTuple):
    data: bytes
    whole: bool = True


def blocks(source: Source, notes: Notes) -> Iterator[Block]:
    """Blocks of a path (a string is always a path) or of lines, with or without their line ends."""
    if isinstance(source, str) and "\n" in source:
        raise LogError("text was given where a path or lines are wanted; pass text.splitlines()")
    if isinstance(source, str | os.PathLike):
        return _of_path(Path(source), notes)
    return _of_lines(source)


def label(source: Source) -> str:
    """How messages call the source."""
    return str(source) if isinstance(source, str | os.PathLike) else "the log"


def _of_path(path: Path, notes: Notes) -> Iterator[Block]:
    try:
        with path.open("rb") as file:
            start = file.peek(4)[:4] if hasattr(file, "peek") else b""
            for magic, name in PACKED.items():
                if start.startswith(magic):
                    raise LogError(f"{path} is packed with {name}; unpack it first")
            if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                yield from _of_chunks(_utf16(file), notes)
            else:
                yield from _of_chunks(iter(lambda: file.read(BLOCK), b""), notes)
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"cannot read the log {str(path)!r}: {error}") from error


def _utf16(file: IO[bytes]) -> Iterator[bytes]:
    """PowerShell's ``>`` writes UTF-16."""
    reader = codecs.getreader("utf-16")(file, "replace")
    while text := reader.read(BLOCK):
        yield text.encode("utf-8", "replace")


def _of_chunks(chunks: Iterable[bytes], notes: Notes) -> Iterator[Block]:
    rest: list[bytes] = []
    size = 0
    skipping = False
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            if skipping:
                start = chunk.find(b"\n") + 1
                skipping = False
                head = chunk[start:end]
            else:
                head = b"".join((*rest, chunk[:end]))
            if head:
                yield Block(head)
            rest, size = [chunk[end:]], len(chunk) - end
        elif not skipping:
            rest.append(chunk)
            size += len(chunk)
        if size > LONGEST_LINE:
            notes.warn("long_line")
            skipping = True
            rest, size = [], 0
    last = b"".join(rest)
    if last:
        yield Block(last, whole=False)


def _of_lines(lines: Iterable[str] | Iterable[bytes]) -> Iterator[Block]:
    batch: list[bytes] = []
    ended = False
    whole = True
    for line in lines:
        data = line.encode("utf-8", "replace") if isinstance(line, str) else bytes(line)
        whole = data.endswith(b"\n")
        ended = ended or whole
        batch.append(data if whole else data + b"\n")
        if len(batch) == LINES:
            yield Block(b"".join(batch[:-1]))
            batch = batch[-1:]
    # Only where lines come with their ends does a missing one mean that the last line was cut.
    if batch and ended and not whole:
        yield Block(b"".join(batch[:-1]))
        yield Block(batch[-1].rstrip(b"\n"), whole=False)
    elif batch:
        yield Block(b"".join(batch))
