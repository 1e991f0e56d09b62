"""Starts the double for one run, as a server like any other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.serving.errors import ServingError
from harness.serving.running import RunningServer
from harness.serving.scripted import documents, scenario
from harness.serving.scripted.engine import Engine
from harness.serving.scripted.http import ScriptedHTTPServer
from harness.settings import ServerSettings

LOG = "server.log"


@contextmanager
def open_scripted(
    settings: ServerSettings, run_dir: Path, *, scenario_dirs: tuple[Path, ...] = (), seed: int | None = None
) -> Iterator[RunningServer]:
    """A ready, cold double that plays `settings.scenario`; its log is `run_dir`/server.log.

    It listens on 127.0.0.1 at settings.port, or at a free one, in threads of this process, with exactly the window
    settings.n_ctx. scenario_dirs: where scenarios are looked for by name before the shipped ones. seed: of a simulation that is to
    draw by the run; None takes the first request's.

    Raises:
        ServingError: no such scenario, one that does not hold, or a port that is taken.
    """
    if not settings.scenario:
        raise ServingError("server.scenario: needs the scenario to play")
    played = scenario.read(scenario.find(settings.scenario, scenario_dirs))
    try:
        server = ScriptedHTTPServer(settings.port or 0)
    except OSError as e:
        raise ServingError(f"server.port: can't listen on 127.0.0.1:{settings.port} ({e.strerror})") from e
    log = run_dir / LOG
    engine = Engine(played, settings.n_ctx, log_path=log, url=server.address_text, seed=seed)
    server.engine = engine
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    running = RunningServer(
        kind="scripted",
        base_url=server.address_text,
        build=documents.BUILD,
        n_ctx=settings.n_ctx,
        log=log,
        props=documents.props(engine.model, settings.n_ctx),
        flags=[f"scenario={settings.scenario}"],
        cold=True,
        api_key=settings.api_key,
        request_timeout_s=settings.request_timeout_s,
    )
    try:
        yield running
    finally:
        running.close()
        server.shutdown()
        thread.join()
        server.server_close()
        engine.close()
