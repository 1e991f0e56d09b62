"""What stands in front of a server's line: journald, syslog, docker compose, a router's port; and lines in between.

Contract: :func:`clean` makes every block the same whatever terminal or system wrote it; :class:`Wrapper` names what it
saw and says per line which container and port it came from. Prefixes are not cut off: the era modules search.
"""

from __future__ import annotations

import re

PREFIX = re.compile(
    rb"""
    (?: (?P<journald>
          (?: [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d(?:\.\d+)?  # also journalctl -o short-precise
            | [A-Z][a-z]{2}\ \d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\ (?:[A-Z]{1,5}|[+-]\d\d(?:\d\d)?) )\   # -o short-full
          (?: [^\s\[\]]*\ ?[^\s\[\]:]+\[\d+\] | (?:[^\s:]+\ )?[^\s:\[\]]+ ):\ ? )
      | (?P<iso> (?:<\d+>\d?\ ?)? \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\ (?!slot|srv|que|res|cmn)
          (?: [^\s\[\]]*\ ?[^\s\[\]:]+\[\d+\] | [^\s:]+\ [^\s:\[\]]+ ):\ ? )
    )?
    (?: (?P<name> (?=[\w.-]*[A-Za-z]) \w[\w.-]*) \ *\|\ )?
    (?P<stamp> \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\ )?
    (?: \[(?P<port> \d{2,5})\]\ ?)?
    """,
    re.VERBOSE,
)
ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\([AB0]|#033\[[0-9;]*m")  # the last: as rsyslog writes an escape
LLAMA_SWAP = re.compile(rb"\[(?:INFO|WARN|ERROR|DEBUG)\] |<[\w./-]+> ")
OLLAMA = re.compile(rb"time=\S+ level=[A-Z]+ |\[GIN\] ")

SAMPLE = 64
"""Lines looked at in each block to name its wrappers."""
SMALL_BLOCK = 256


class Wrapper:
    """What was seen around the lines so far."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}
        self.many_sources = False
        """Whether lines have to be told apart by container or port."""

    def clean(self, block: bytes) -> bytes:
        """A block without terminal colours and carriage returns."""
        if b"\x1b" in block or b"#033[" in block:
            block, found = ANSI.subn(b"", block)
            if found:
                self._seen["ansi"] = None
        if b"\r" in block:
            if b"\r\n" in block:
                self._seen["crlf"] = None
            block = block.replace(b"\r", b"")
        return block

    def look(self, block: bytes, lines: list[bytes]) -> None:
        """Name what a sample of the block's lines wears, and look for ports where there can be any."""
        step = 1 if len(lines) <= SMALL_BLOCK else len(lines) // SAMPLE
        for line in lines[::step]:
            self._see(line)
        if b"[" in block and not self.many_sources and (b"\n[" in block or b": [" in block or b"Z [" in block):
            self.many_sources = any(PREFIX.match(line)["port"] for line in lines)  # type: ignore[index]

    def _see(self, line: bytes) -> None:
        match = PREFIX.match(line)
        assert match is not None
        rest = line[match.end() :]
        if match.end():
            if not rest:
                return
            for name, word in WORDS.items():
                if match[name] is not None:
                    self._seen[word] = None
            if match["stamp"] is not None:
                self._seen["docker-compose-timestamps" if match["name"] is not None else "timestamps"] = None
            if match["name"] is not None or match["port"] is not None:
                self.many_sources = True
        if b" blob data]" in rest:
            self._seen["journald-blob"] = None
        elif rest[:1] in (b"[", b"<") and LLAMA_SWAP.match(rest):
            self._seen["llama-swap"] = None
        elif rest[:1] in (b"t", b"[") and OLLAMA.match(rest):
            self._seen["ollama"] = None

    @staticmethod
    def source(line: bytes) -> tuple[bytes | None, bytes | None]:
        """Container and port of a line."""
        match = PREFIX.match(line)
        assert match is not None
        return match["name"], match["port"]

    def name(self) -> str:
        """The wrappers from the outside in, joined by ``+``; ``plain`` when there is none."""
        words = [word for word in ORDER if word in self._seen]
        if "docker-compose-timestamps" in words:
            words.remove("docker-compose")
        return "+".join(words) or "plain"


WORDS = {"journald": "journald", "iso": "syslog-iso", "name": "docker-compose", "port": "router"}
ORDER = (
    "journald",
    "journald-blob",
    "syslog-iso",
    "timestamps",
    "docker-compose",
    "docker-compose-timestamps",
    "router",
    "llama-swap",
    "ollama",
    "ansi",
    "crlf",
)
