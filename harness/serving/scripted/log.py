"""The double's server.log: llama-server's lines of builds from b9829 on, at trace level (`-lv 4`).

Times are those of a clock that runs with the scenario's rates, so the same run gives the same log. What a real log tells of the
machine, the model file and the sampler is left out.
"""

from __future__ import annotations

from pathlib import Path

SLOT, SERVER, COMMON = "slot {:>12}: id  0 | task {} | ", "srv  {:>12}: ", "cmn  {:>12}: "


class Clock:
    """Seconds since the server began, moved on by the work that is accounted for."""

    def __init__(self) -> None:
        self.now = 0.0

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def stamp(self) -> str:
        """Minutes, seconds, milliseconds and microseconds in llama-server's form."""
        microseconds = round(self.now * 1e6)
        seconds, fraction = divmod(microseconds, 1_000_000)
        minutes, seconds = divmod(seconds, 60)
        return f"{minutes}.{seconds:02d}.{fraction // 1000:03d}.{fraction % 1000:03d}"


class ServerLog:
    """Writes the log, one flushed line at a time; None as a path writes nothing."""

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._file = path.open("w", encoding="utf-8") if path else None
        self._clock = clock

    def server(self, function: str, text: str, level: str = "I") -> None:
        self._line(level, SERVER.format(function[:12]) + text)

    def slot(self, function: str, task: int, text: str, level: str = "I") -> None:
        self._line(level, SLOT.format(function[:12], task) + text)

    def common(self, function: str, text: str) -> None:
        self._line("I", COMMON.format(function[:12]) + text)

    def continuation(self, text: str) -> None:
        """A further line of the message before, without a prefix."""
        self._write(text)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _line(self, level: str, text: str) -> None:
        self._clock.advance(0.00001)
        self._write(f"{self._clock.stamp()} {level} {text}")

    def _write(self, line: str) -> None:
        if self._file is not None:
            self._file.write(line.encode("utf-8", "replace").decode() + "\n")
            self._file.flush()


def started(log: ServerLog, *, build: str, model: str, n_ctx: int, url: str, keeps_thinking: bool) -> None:
    """The lines of a start, up to the idle slot."""
    log.server("init", "initializing ...")
    log.server("init", f"build_info: {build}")
    log.server("init", "loading model")
    log.server("load_model", f"loading model '{model}'")
    log.server("load_model", f"initializing, n_slots = 1, n_ctx_slot = {n_ctx}, kv_unified = 'false'")
    log.slot("load_model", -1, f"new slot, n_ctx = {n_ctx}")
    log.server("load_model", "prompt cache is disabled - use `--cache-ram N` to enable it")
    log.server("init", f"init: chat template, thinking = {int(keeps_thinking)}")
    log.server("init", "init: model loaded")
    log.server("init", f"init: listening on {url}")
    log.server("update_slots", "all slots are idle")
