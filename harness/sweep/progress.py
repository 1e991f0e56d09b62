"""Live progress on stderr: runs done, this run's step, tokens, window use, time left; plain lines when not a terminal."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text


class Progress:
    """Follows a sweep; `listener()` of the run at hand is told of its events."""

    def __init__(self, total: int, done: int, console: Console | None = None) -> None:
        self.total, self.done = total, done
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.durations: list[float] = []
        self._run: RunLine | None = None
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True, get_renderable=self._text)
            self._live.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*exc)
            self._live = None

    def begin(self, label: str, run_id: str, max_steps: int) -> RunLine:
        self._run = RunLine(label, run_id, max_steps)
        if self._live is None:
            self.say(f"[{self.done + 1}/{self.total}] {run_id} {label}: started")
        return self._run

    def end(self, seconds: float, words: str) -> None:
        run, self._run = self._run, None
        self.done += 1
        self.durations.append(seconds)
        name = f"{run.run_id} {run.label}" if run else ""
        self.say(f"[{self.done}/{self.total}] {name}: {words}, {seconds:.0f} s{self._left()}")

    def say(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)

    def _left(self) -> str:
        if not self.durations or self.done >= self.total:
            return ""
        minutes = statistics.median(self.durations) * (self.total - self.done) / 60
        return f"; about {minutes:.0f} min left" if minutes >= 1 else "; less than a minute left"

    def _text(self) -> Text:
        line = f"{self.done}/{self.total} runs done{self._left()}"
        return Text(line if self._run is None else f"{line}\n{self._run.text()}")


class RunLine:
    """One run as seen through its events; an EventSink."""

    def __init__(self, label: str, run_id: str, max_steps: int) -> None:
        self.label, self.run_id, self.max_steps = label, run_id, max_steps
        self.started = time.monotonic()
        self.step, self.tokens, self.n_ctx = 0, 0, 0
        self.cuts = self.clears = 0
        self.doing = "starting the server"

    def emit(self, event: str, **fields: Any) -> None:
        match event:
            case "start":
                self.n_ctx = fields["n_ctx"]
            case "request":
                self.step, self.doing = fields["step"], "the model is at work"
            case "response":
                usage = fields.get("usage") or {}
                self.tokens = usage.get("total_tokens") or self.tokens
                self.cuts += fields["outcome"] == "cut"
            case "context":
                self.clears += 1
            case "call":
                self.doing = f"{fields['name']} done"
            case "finish_check":
                self.doing = "finish check " + ("passed" if fields["passed"] else "failed")
            case "stop":
                self.doing = "grading"

    def text(self) -> str:
        use = f"{self.tokens}/{self.n_ctx} tokens ({100 * self.tokens // self.n_ctx} %)" if self.n_ctx else ""
        marks = f", {self.cuts} cut, {self.clears} clears" if self.cuts or self.clears else ""
        seconds = time.monotonic() - self.started
        return f"{self.label}: step {self.step + 1}/{self.max_steps}, {use}{marks}, {self.doing}, {seconds:.0f} s"
