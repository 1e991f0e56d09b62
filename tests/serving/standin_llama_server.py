"""A stand-in for a llama-server binary: takes its flags, serves with the wheel's llama.cpp.

Refuses flags it does not know in llama-server's words, so that what happens with an older build can be seen.
"""

from __future__ import annotations

import sys
import threading


def main(argv: list[str]) -> int:
    if argv == ["--version"]:
        print("version: 10587 (2cbfdf4)\nbuilt with a stand-in", file=sys.stderr)
        return 0
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.ui = False
    words = iter(argv)
    for flag in words:
        match flag:
            case "-m":
                params.model.path = next(words)
            case "-c":
                params.n_ctx = int(next(words))
            case "-np":
                params.n_parallel = int(next(words))
            case "-t":
                params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(next(words))
            case "--jinja":
                params.use_jinja = True
            case "--no-warmup":
                params.warmup = False
            case "--cache-ram":
                params.cache_ram_mib = int(next(words))
            case "-lv":
                params.verbosity = int(next(words))
            case "--slots":
                params.endpoint_slots = True
            case "--context-shift" | "--no-context-shift":
                params.ctx_shift = flag == "--context-shift"
            case "--slot-save-path":
                params.slot_save_path = next(words)
            case "--host":
                params.hostnames = [next(words)]
            case "--port":
                params.port = int(next(words))
            case _:
                print(f"error: invalid argument: {flag}", file=sys.stderr)
                return 1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        return 1
    threading.Event().wait()
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
