"""The one slot: its cache, its task numbers, and the log lines of every request that reaches it."""

from __future__ import annotations

from typing import Any

from harness.serving.scripted.errors import Refused
from harness.serving.scripted.log import Clock, ServerLog
from harness.serving.scripted.timing import RequestTimes

_BATCH = 2048
_PROGRESS_S = 3.0
_SIMILAR = 0.1
_SAMPLER_PARAMS = (
    "\trepeat_last_n = 64, repeat_penalty = 1.000, frequency_penalty = 0.000, presence_penalty = 0.000",
    "\tdry_multiplier = 0.000, dry_base = 1.750, dry_allowed_length = 2, dry_penalty_last_n = 64",
    "\ttop_k = 40, top_p = 0.950, min_p = 0.050, xtc_probability = 0.000, xtc_threshold = 0.100, typical_p = 1.000, "
    "top_n_sigma = -1.000, temp = {temperature:.3f}",
    "\tmirostat = 0, mirostat_lr = 0.100, mirostat_ent = 5.000, adaptive_target = -1.000, adaptive_decay = 0.900",
)


class Slot:
    """What llama-server keeps between requests with one slot, no RAM cache and no shifting.

    tokens: those of the last prompt and of what was generated after it, without the last sampled one, which was never evaluated.
    """

    def __init__(self, n_ctx: int, log: ServerLog, clock: Clock) -> None:
        self.tokens: list[int] = []
        self.n_ctx = n_ctx
        self.last_task: int | None = None
        self.last_params: dict[str, Any] = {}
        self._log = log
        self._clock = clock
        self._next_task = 0
        self._graphs = 0
        self._last_used_us = -1

    def common_prefix(self, prompt: list[int]) -> int:
        """How many tokens at the beginning of the prompt the slot holds."""
        for n, (new, held) in enumerate(zip(prompt, self.tokens, strict=False)):
            if new != held:
                return n
        return min(len(prompt), len(self.tokens))

    def take_number(self) -> int:
        """A task number for a request that is answered beside the slot (`/slots`, erase)."""
        self._next_task += 1
        return self._next_task - 1

    def launch(self, prompt: list[int], temperature: float) -> int:
        """A request takes the slot; returns its task number."""
        task = self.take_number()
        common, log = self.common_prefix(prompt), self._log
        similarity = common / len(prompt) if prompt else 0.0
        if not self.tokens:
            log.slot("get_available_slot", -1, " - skipping, slot is empty")
        else:
            log.slot("get_available_slot", -1, f" - checking sim = {similarity:.3f} ({common}/{len(prompt)}) > 0.100")
        if self.tokens and similarity > _SIMILAR:
            kept = common / len(self.tokens)
            text = f"LCP similarity, f_sim_best = {similarity:.3f} (> 0.100 thold), f_keep = {kept:.3f}"
        else:
            text = f"LRU, t_last = {self._last_used_us}"
        log.slot("get_available_slot", -1, f"selected slot by {text}")
        sampler = "greedy" if temperature <= 0 else "dist"
        chain = "?penalties -> ?dry -> ?top-n-sigma -> top-k -> ?typical -> top-p -> min-p -> ?xtc -> temp-ext"
        log.slot("launch_slot_with_task", -1, f"sampler chain: logits -> {chain} -> {sampler} ")
        log.slot("launch_slot_with_task", -1, "sampler params: ")
        for line in _SAMPLER_PARAMS:
            log.continuation(line.format(temperature=temperature))
        log.slot("launch_slot_with_task", task, "processing task, is_child = 0")
        log.slot(
            "operator()", task, f"new prompt, n_ctx_slot = {self.n_ctx}, n_keep = 0, task.n_tokens = {len(prompt)}"
        )
        return task

    def refuse(self, task: int, error: Refused) -> None:
        """The slot gives the task up without processing anything more; what it holds stays."""
        self._log.server("send_error", f"task id = {task}, error: {error.message}", "E")
        self._release(task, truncated=False)
        self._log.server("stop", f"cancel task, id_task = {task}", "W")
        self._log.server("update_slots", "all slots are idle")
        self._next_task += 2

    def evaluate(self, task: int, prompt: list[int], rate: float) -> int:
        """Reads the prompt; returns how many of its tokens were reused (at most all but one)."""
        common = self.common_prefix(prompt)
        reused = min(common, len(prompt) - 1)
        if reused < common:
            sizes = f"(n_past = {common}, task.n_tokens() = {len(prompt)})"
            self._log.slot("operator()", task, f"need to evaluate at least 1 token for each active slot {sizes}", "W")
            self._log.slot("operator()", task, f"n_past was set to {reused}", "W")
        begin, batch = self._clock.now, min(_BATCH, self.n_ctx)
        for done in range(0, len(prompt) - reused, batch):
            if done:
                self._next_task += 1
                self._clock.advance(begin + done / rate - self._clock.now)
                self._prompt_progress(task, prompt, reused, done, rate)
            held = reused + done
            self._log.slot("operator()", task, f"cached n_tokens = {held}, memory_seq_rm [{held}, end)")
        sizes = f"tokens: text = {len(prompt)}, total = {len(prompt)}"
        self._log.slot("init_sampler", task, f"init sampler, took 0.01 ms, {sizes}")
        self._clock.advance(max(0.0, begin + (len(prompt) - reused) / rate - self._clock.now))
        self.tokens = list(prompt)
        return reused

    def write(self, task: int, generated: list[int], times: RequestTimes) -> None:
        """Writes the reply and releases the slot."""
        prompt_tokens = len(self.tokens)
        self._writing_progress(task, times)
        self.tokens += generated[:-1]
        self._graphs += max(0, times.generated - 2)
        total_ms = times.prompt_ms + times.predicted_ms
        log = self._log
        for name, ms, tokens, per_token, per_second in (
            (
                "prompt eval time",
                times.prompt_ms,
                times.evaluated,
                times.prompt_ms / times.evaluated,
                times.prompt_rate,
            ),
            ("       eval time", times.predicted_ms, times.generated, times.per_token_ms, times.per_second),
        ):
            rates = f"({per_token:8.2f} ms per token, {per_second:8.2f} tokens per second)"
            log.slot("print_timing", task, f"{name} = {ms:10.2f} ms / {tokens:5d} tokens {rates}")
        log.slot(
            "print_timing",
            task,
            f"      total time = {total_ms:10.2f} ms / {times.evaluated + times.generated:5d} tokens",
        )
        log.slot("print_timing", task, f"   graphs reused = {self._graphs:10d}")
        self._release(task, truncated=prompt_tokens + len(generated) >= self.n_ctx)
        self._next_task += len(generated)
        self._last_used_us = round(self._clock.now * 1e6)

    def erase(self) -> int:
        """Empties the slot; returns how many tokens it held."""
        self.take_number()
        held, self.tokens = len(self.tokens), []
        self._log.slot("prompt_clear", -1, f"clearing prompt with {held} tokens")
        self._log.server("update_slots", "all slots are idle")
        return held

    def _release(self, task: int, *, truncated: bool) -> None:
        self.last_task = task
        text = f"stop processing: n_tokens = {len(self.tokens)}, truncated = {int(truncated)}"
        self._log.slot("release", task, text)
        self._log.server("update_slots", "all slots are idle")

    def _prompt_progress(self, task: int, prompt: list[int], reused: int, done: int, rate: float) -> None:
        seconds = done / rate
        if seconds >= _PROGRESS_S:
            progress = (reused + done) / len(prompt)
            rates = f"t = {seconds:6.2f} s / {rate:.2f} tokens per second"
            text = f"prompt processing, n_tokens = {done:6d}, progress = {progress:.2f}, {rates}"
            self._log.slot("print_timing", task, text)

    def _writing_progress(self, task: int, times: RequestTimes) -> None:
        begin, seconds = self._clock.now, times.predicted_ms / 1000
        mark = _PROGRESS_S
        while mark < seconds:
            written = int(mark * times.write_rate)
            self._clock.advance(begin + mark - self._clock.now)
            if written >= 100:
                rate = f"{times.write_rate:6.2f} t/s"
                self._log.slot("print_timing", task, f"n_gen = {written:6d}, tg = {rate}, tg_3s = {rate}")
            mark += _PROGRESS_S
        self._clock.advance(max(0.0, begin + seconds - self._clock.now))
