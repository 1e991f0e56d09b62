"""A small decision server for tests: real HTTP, answers and failures from a list, every request kept."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, bytes]
NOT_A_DECIDER = {
    "error": {"code": 501, "message": "This model is not a decision model", "type": "not_supported_error"},
}


class ScriptedDecider:
    """`reply` is called with each request's body; it returns a status and a body, or raises to drop the connection."""

    def __init__(self, url: str, reply: Callable[[dict[str, Any]], Reply]) -> None:
        self.url = url
        self.reply = reply
        self.requests: list[tuple[str, dict[str, Any]]] = []


def answer(probability: float, choice: str | None = None) -> Reply:
    """A reply in llama-server's format."""
    picked = choice or ("2" if probability >= 0.5 else "1")
    told = {
        "model": "scripted",
        "answers": {
            "q": {
                "type": "choice",
                "choice": picked,
                "probabilities": {"1": 1 - probability, "2": probability},
                "confidence": max(probability, 1 - probability),
            }
        },
        "usage": {"input_tokens": 40, "output_tokens": 0},
    }
    return 200, json.dumps(told).encode()


@contextmanager
def scripted_decider(reply: Callable[[dict[str, Any]], Reply]) -> Iterator[ScriptedDecider]:
    """Serve on a free port of the local machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            decider.requests.append((self.path, body))
            try:
                status, content = decider.reply(body)
            except ConnectionError:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    decider = ScriptedDecider(f"http://127.0.0.1:{server.server_port}", reply)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield decider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
