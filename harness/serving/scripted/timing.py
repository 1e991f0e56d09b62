"""The milliseconds of a request, from the scenario's rates, in the form of llama-server's `timings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# What llama-server reports for writing when there was nothing to wait for.
_NOTHING_MS = 0.001


@dataclass(frozen=True)
class RequestTimes:
    """reused, evaluated, generated: tokens; the milliseconds follow from the rates (tokens a second)."""

    reused: int
    evaluated: int
    generated: int
    prompt_rate: float
    write_rate: float

    @property
    def prompt_ms(self) -> float:
        return round(self.evaluated * 1000 / self.prompt_rate, 3)

    @property
    def predicted_ms(self) -> float:
        """The first token comes out of the prompt's last batch, so n tokens take n - 1 steps."""
        return round((self.generated - 1) * 1000 / self.write_rate, 3) if self.generated > 1 else _NOTHING_MS

    @property
    def per_token_ms(self) -> float:
        return self.predicted_ms / (self.generated - 1) if self.generated > 1 else 0.0

    @property
    def per_second(self) -> float:
        return (self.generated - 1) * 1000 / self.predicted_ms if self.generated > 1 else 0.0

    def timings(self) -> dict[str, Any]:
        return {
            "cache_n": self.reused,
            "prompt_n": self.evaluated,
            "prompt_ms": self.prompt_ms,
            "prompt_per_token_ms": self.prompt_ms / self.evaluated,
            "prompt_per_second": self.evaluated * 1000 / self.prompt_ms,
            "predicted_n": self.generated,
            "predicted_ms": self.predicted_ms,
            "predicted_per_token_ms": self.per_token_ms,
            "predicted_per_second": self.per_second,
        }

    def usage(self) -> dict[str, Any]:
        prompt = self.reused + self.evaluated
        return {
            "completion_tokens": self.generated,
            "prompt_tokens": prompt,
            "total_tokens": prompt + self.generated,
            "prompt_tokens_details": {"cached_tokens": self.reused},
        }
