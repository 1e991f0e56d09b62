"""Names of arms for readers: what all runs of a set share is left out, and a key is as short as it stays unambiguous.

`part3 4K agent.max_steps=8 protocol=text_json` beside `part2 4K agent.max_steps=8 protocol=native` reads
`part3 4K protocol=text_json` beside `part2 4K protocol=native`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.record.summary import label_head, label_overrides


def short_labels(runs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[str | None]:
    """One label for each (manifest, result); runs of one arm get one label, those of two arms get two.

    All None, the recorded names stay: where one of them is not what its manifest gives (another program's, an older
    version's), a shorter name of one arm could be the recorded name of another.
    """
    overrides = [label_overrides(manifest.get("cell")) for manifest, _ in runs]
    heads = [label_head(result.get("agent"), result.get("n_ctx")) for _, result in runs]
    whole = [" ".join([*head, *of_run]) for head, of_run in zip(heads, overrides, strict=True)]
    if any(label != result.get("arm") for label, (_, result) in zip(whole, runs, strict=True)):
        return [None] * len(runs)
    shared = set.intersection(*map(set, overrides)) if overrides else set()
    keys = {item.partition("=")[0] for of_run in overrides for item in of_run}
    return [
        " ".join([*head, *(_brief(item, keys) for item in of_run if item not in shared)])
        for head, of_run in zip(heads, overrides, strict=True)
    ]


def _brief(override: str, keys: set[str]) -> str:
    key, _, value = override.partition("=")
    last = key.rpartition(".")[2]
    alone = sum(other.rpartition(".")[2] == last for other in keys) == 1
    return f"{last if alone else key}={value}"
