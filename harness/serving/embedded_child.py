"""The child process of the embedded server: `python -m harness.serving.embedded_child PARENT_PID PARAMETERS`.

PARAMETERS is a JSON object {field of xllamacpp.CommonParams, dotted: value}. Runs until it is ended; exit code 2 and one
line for parameters this xllamacpp does not take, 3 when llama.cpp can't start with them (its reasons stand above in the
log).
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from harness.serving.tether import hold

# Fields that wheels before the summer of 2026 have under another name (and a single host instead of a list).
OLDER = {"ui": "webui", "hostnames": "hostname"}


def main(argv: list[str]) -> int:
    hold(int(argv[0]))
    import xllamacpp

    params = xllamacpp.CommonParams()
    for name, value in json.loads(argv[1]).items():
        try:
            set_field(params, name, value)
        except (AttributeError, TypeError, ValueError, OverflowError) as e:
            print(f"error: xllamacpp {xllamacpp.__version__} does not take {name}={value!r} ({e})", file=sys.stderr)
            return 2
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        return 3
    threading.Event().wait()  # the server listens in threads of its own for as long as `server` is referenced
    del server
    return 0


def set_field(params: Any, dotted: str, value: Any) -> None:
    """Sets a field that is there; raises AttributeError for one that is not, instead of inventing it."""
    *path, name = dotted.split(".")
    for step in path:
        params = getattr(params, step)
    if name in OLDER and not hasattr(params, name):
        name, value = OLDER[name], value[0] if isinstance(value, list) else value
    getattr(params, name)
    setattr(params, name, value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
