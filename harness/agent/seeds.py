"""Seeds of single requests."""

from __future__ import annotations

import hashlib


def derive_seed(run_seed: int, step: int) -> int:
    """The seed of one request: 31 bits of a hash of (run seed, step), the same for a retry of that step."""
    digest = hashlib.sha256(f"{run_seed}:{step}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
