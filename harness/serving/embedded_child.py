"""The child process of the embedded server: `python -m harness.serving.embedded_child PARENT_PID PARAMETERS`.

PARAMETERS is a JSON object {field of xllamacpp.CommonParams, dotted: value}. Runs until it is ended; exit code 2 and
one line for parameters this xllamacpp does not take, 3 when llama.cpp can't start with them (its reasons stand above
in the log).
"""

from __future__ import annotations

import json
import sys
import threading

from harness.serving.tether import hold


def main(argv: list[str]) -> int:
    hold(int(argv[0]))
    import xllamacpp

    params = xllamacpp.CommonParams()
    for dotted, value in json.loads(argv[1]).items():
        *path, name = dotted.split(".")
        try:
            holder = params
            for step in path:
                holder = getattr(holder, step)
            getattr(holder, name)
            setattr(holder, name, value)
        except (AttributeError, TypeError) as e:
            print(f"error: xllamacpp {xllamacpp.__version__} does not take {dotted}={value!r} ({e})", file=sys.stderr)
            return 2
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        return 3
    threading.Event().wait()  # the server listens in threads of its own for as long as `server` is referenced
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
