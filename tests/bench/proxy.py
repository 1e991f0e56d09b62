"""What the recording proxy adds to one request: ``python -m tests.bench.proxy``

The same requests go in turn, over a connection each, to the double directly and the whole way of an agent in a sandbox: the
forwarder's process, the Unix socket, the proxy. The copy that is looked at holds 20 small files. Prints medians and ninth deciles
in milliseconds; at most 3 ms at the median is what the design allows.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import socket
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from harness.external import door
from harness.external.proxy import Proxy
from harness.external.recorder import Recorder
from harness.external.watch import WatchedTree
from harness.external.wire import Upstream
from harness.record.events import EventWriter
from harness.serving.scripted.opening import open_scripted
from harness.settings import ServerSettings

SCENARIO = "about: answers\nsteps:\n- {say: All is well with a few words more., times: null}\n"
SIZES = {"short": 1, "long": 60}


def timed(port: int, body: bytes) -> float:
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/chat/completions", body)
    assert connection.getresponse().read().endswith((b"}", b"[DONE]\n\n"))
    connection.close()
    return (time.perf_counter() - start) * 1000


def body(turns: int, stream: bool) -> bytes:
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n} " + "words " * 50} for n in range(turns)]
    return json.dumps({"messages": messages, "stream": stream}).encode()


def carry(listener: socket.socket, path: str) -> None:
    """The forwarder as it is in a sandbox, in a process of its own."""
    asyncio.run(door.serve(listener, path))


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "copy").mkdir()
        for number in range(20):
            (place / "copy" / f"file{number}.py").write_text("x = 1\n" * 50)
        scenario = place / "answers.yaml"
        scenario.write_text(SCENARIO)
        settings = ServerSettings(kind="scripted", n_ctx=32768, scenario=str(scenario))
        with open_scripted(settings, place) as server, EventWriter(place / "events.jsonl") as events:
            tree = WatchedTree(place / "copy")
            recorder = Recorder(events, tree, {"instruction": ""}, max_steps=10**9, n_ctx=server.n_ctx)
            at = place / "door.sock"
            listener = socket.create_server(("127.0.0.1", 0))
            with Proxy(Upstream(server.base_url, None, 60.0), recorder, at, timeout_s=60.0):
                forwarder = multiprocessing.get_context("fork").Process(
                    target=carry, args=(listener, str(at)), daemon=True
                )
                forwarder.start()
                ports = {"direct": int(server.base_url.rsplit(":", 1)[1]), "proxy": listener.getsockname()[1]}
                for what, turns in SIZES.items():
                    for stream in (False, True):
                        sent = body(turns, stream)
                        times: dict[str, list[float]] = {way: [] for way in ports}
                        for _ in range(rounds):
                            for way, port in ports.items():
                                times[way].append(timed(port, sent))
                        added = median(times["proxy"]) - median(times["direct"])
                        for way, ms in times.items():
                            nine = quantiles(ms, n=10)[-1]
                            name = f"{what}{', streamed' if stream else ''}"
                            print(f"{name:16} {way:7} median {median(ms):6.2f} ms   90 % {nine:6.2f} ms")
                        print(f"{name:16} added   median {added:+6.2f} ms")
                forwarder.terminate()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=200, help="requests of each size and way")
    main(options.parse_args().rounds)
