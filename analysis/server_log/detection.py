"""Which era a log is of, by what only that era prints.

Contract: evidence is collected from the first blocks of a log and again after a restart; :meth:`Era.name` gives
``A`` to ``E``, several joined by ``+`` when a log changes its format, ``None`` when nothing tells. The reading of rows
does not depend on it.
"""

from __future__ import annotations

import re

MARKS: tuple[tuple[str, bytes], ...] = (
    ("A", b"is processing [task id: "),
    ("A", b"| to process: "),
    ("A", b" tokens in cache)"),
    ("B", b"slot is processing task"),
    ("B", b"kv cache rm [p0"),
    ("B", b"generation eval time"),
    ("C", b"| prompt processing progress"),
    ("C", b"| prompt done"),
    ("C", b"| prompt processing done"),
    ("C", b"| kv cache rm ["),
    ("C", b"tokenizing prompt"),
    ("C", b"n_prompt_tokens = "),
    ("reduced", b"cached n_tokens = "),
    ("reduced", b"n_decoded = "),
    ("reduced", b"| prompt processing, n_tokens = "),
    ("E", b"n_gen = "),
    ("E", b"f_sim_best = "),
    ("tagged", b" | task "),
    ("idle", b"all slots are idle"),
    ("trace", b"| new prompt, "),
    ("trace", b"request: "),
    ("operator", b"operator(): id"),
)
LEVELS = re.compile(rb"\b([IW]) (?:slot [^\n|]*\| task -?\d+ \| (?:restored context|forcing full)|srv +prompt_save:)")
STAMPED = re.compile(rb"\d\.\d\d\.\d{3}\.\d{3} [IWED] ")
TAGGED_TIMING = re.compile(rb"\| task \d+ \| prompt eval time = ")
UNCACHED = re.compile(rb"\| (?:n_tokens|n_past) = \d+, memory_seq_rm")
BUILD = re.compile(rb"build_info: b(\d{1,9})-|\bbuild: (\d{1,9}) \(|\bbuild\"?[=:](\d{1,9})")
SERVER = re.compile(
    rb"\b(?:slot|srv) +[\w()~:]{1,16}: |HTTP server listening|server is listening on |llama server listening"
    rb'|slot \d+ (?:is processing|released)|"function":"(?:main|log_server_request|launch_slot\w*)"'
    rb"|\[ *(?:log_server_request|launch_slot_with_\w+|update_slots|print_timings)\]"
)

FIRST_BUILDS = ((9829, "E"), (9151, "D"), (3761, "C"), (2259, "B"), (1413, "A"))
BLOCKS = 4
"""How many blocks are searched for evidence at the start and after each restart."""
SEARCHED = 1 << 17
"""How many bytes of such a block."""


class Era:
    """The evidence so far."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._missing = dict.fromkeys(MARKS)
        self._builds: set[int] = set()
        self._left = BLOCKS
        self.is_server = False

    def look(self, block: bytes) -> None:
        if not self.is_server and SERVER.search(block):
            self.is_server = True
        if not self._left:
            return
        self._left -= 1
        block = block[:SEARCHED]
        for mark in [mark for mark in self._missing if mark[1] in block]:
            del self._missing[mark]
            self._found.add(mark[0])
        if UNCACHED.search(block):
            self._found.add("C")
        if TAGGED_TIMING.search(block):
            self._found.add("reduced")
        if STAMPED.search(block):
            self._found.add("stamped")
        if b"restored context" in block or b"forcing full" in block or b"prompt_save:" in block:
            self._found |= {"shown_W" if match[1] == b"W" else "shown_I" for match in LEVELS.finditer(block)}
        if b"build" in block:
            self._builds |= {int(next(filter(None, match.groups()))) for match in BUILD.finditer(block)}

    def again(self) -> None:
        """A server restarted: what follows may be of another build."""
        self._left = max(self._left, BLOCKS)

    def names(self) -> list[str]:
        """Every era the evidence speaks for, in order."""
        found = self._found
        names = {name for name in "ABCE" if name in found}
        for build in self._builds:
            names |= {next((era for first, era in FIRST_BUILDS if build >= first), "")} - {""}
        if "D" not in names and "E" not in names and ("reduced" in found or ("tagged" in found and "C" not in names)):
            if "reduced" in found or "stamped" in found:
                names.add(self._reduced())
            elif not names:
                names.add("C")
        return sorted(names)

    def _reduced(self) -> str:
        found = self._found
        if "shown_W" in found:
            return "D"
        if "shown_I" in found:
            return "E"
        if "trace" in found:
            return "E" if "operator" in found else "D"
        return "D" if "idle" in found else "E"

    def name(self) -> str | None:
        return "+".join(self.names()) or None
