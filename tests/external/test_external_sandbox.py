"""Whole runs of agents that misbehave: each ends as a recorded run, and from inside nothing but the proxy answers."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from external_lab import planned

from harness.sweep.run import execute

ASK = """
import json, sys, urllib.error, urllib.request
def ask(text="hi", **fields):
    body = json.dumps({"messages": [{"role": "user", "content": text}], **fields}).encode()
    request = urllib.request.Request(sys.argv[1] + "/chat/completions", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""


LOOK_AROUND = """
import json, os, socket, sys
def tried(family, address):
    with socket.socket(family) as s:
        s.settimeout(2)
        try:
            s.connect(address)
            return "open"
        except OSError as e:
            return type(e).__name__
found = {
    "host": tried(socket.AF_INET, ("127.0.0.1", HOST_PORT)),
    "host6": tried(socket.AF_INET6, ("::1", HOST_PORT)),
    "hosts_address": tried(socket.AF_INET, ("HOST_ADDRESS", HOST_PORT)),
    "internet": tried(socket.AF_INET, ("192.0.2.1", 80)),
    "name_server": tried(socket.AF_INET, ("1.1.1.1", 53)),
    "abstract": tried(socket.AF_UNIX, chr(0) + "ABSTRACT"),
    "door": tried(socket.AF_INET, ("127.0.0.1", 8080)),
}
open_ports = []
for port in range(1, 65536):
    s = socket.socket()
    s.settimeout(2)
    if s.connect_ex(("127.0.0.1", port)) == 0 and s.getsockname() != s.getpeername():
        open_ports.append(port)
    s.close()
found["ports"] = open_ports
sockets = []
for top, folders, names in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(top, f) not in ("/proc", "/sys", "/usr")]
    sockets += [os.path.join(top, n) for n in names if os.path.exists(os.path.join(top, n)) and
                os.stat(os.path.join(top, n)).st_mode & 0o170000 == 0o140000]
found["sockets"] = sockets
print(json.dumps(found))
"""


def test_from_inside_nothing_but_the_proxy_answers(run_program, tmp_path):
    name = f"calledshot-{os.getpid()}"
    with socket.create_server(("0.0.0.0", 0)) as host, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        program = LOOK_AROUND.replace("HOST_PORT", str(host.getsockname()[1])).replace("ABSTRACT", name)
        outcome = run_program(program.replace("HOST_ADDRESS", own_address()))
    found = json.loads(outcome.out)
    assert found.pop("door") == "open"
    assert found.pop("ports") == [8080]
    assert found.pop("sockets") == ["/opt/door/door.sock"]
    assert "open" not in found.values()
    assert len(found) == 6


def own_address() -> str:
    """An address of this machine that is not its loopback, else one for documentation."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return "192.0.2.1"


def test_a_crash_is_a_recorded_run(run_program):
    outcome = run_program(ASK + "ask()\nraise RuntimeError('lost')")
    assert outcome.how == ("agent_failed", False, 1)
    (command,) = outcome.kind("command")
    assert (command["purpose"], command["exit_code"]) == ("agent", 1)
    assert "RuntimeError: lost" in outcome.err
    assert "exit status 1" in outcome.kind("stop")[0]["detail"]


def test_a_signal_is_told(run_program):
    outcome = run_program("import os; os.kill(os.getpid(), 11)")
    assert outcome.how == ("agent_failed", False, 0)
    assert outcome.kind("command")[0]["exit_code"] == 128 + 11
    assert outcome.kind("start")[0]["tools"] == []


def test_a_program_that_is_not_there_is_told(run_program):
    outcome = run_program("", command="no_such_program {task}")
    assert outcome.how == ("agent_failed", False, 0)
    assert "no_such_program" in outcome.err


def test_a_hang_ends_at_the_time_limit(run_program):
    outcome = run_program(ASK + "ask()\nimport time; time.sleep(600)", time_limit_s=4)
    assert outcome.how == ("time_limit", False, 1)


def test_a_hang_in_a_request_ends_at_the_time_limit(run_program):
    slow = "about: slow\nsteps:\n- {say: late, latency_s: 8, times: null}\n"
    outcome = run_program(ASK + "ask()", time_limit_s=4, scenario=slow)
    assert outcome.how == ("time_limit", False, 1)
    (response,) = outcome.kind("response")
    assert response["error"] == "the agent hung up before the answer was complete"


FORK_AWAY = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for fd in range(3):
            os.close(fd)
        while True:
            time.sleep(0.05)
            with open("/srv/project/alive", "a") as f:
                f.write("x")
time.sleep(0.5)
"""


def test_what_forks_away_ends_with_the_run(run_program, tmp_path):
    outcome = run_program(FORK_AWAY)
    assert outcome.how == ("declared_done", True, 0)
    assert (outcome.root / "alive").is_file()
    mark = str(tmp_path)
    assert [
        p for p in Path("/proc").glob("[0-9]*/cmdline") if mark in _text(p) or "/opt/agent/agent.py" in _text(p)
    ] == []


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_using_up_all_processes_leaves_the_door_open(run_program):
    program = ASK + (
        "import os, time\nkids = 0\ntry:\n    while True:\n"
        "        if os.fork() == 0:\n            time.sleep(60)\n        kids += 1\n"
        "except OSError:\n    print(kids > 5, ask(), flush=True)\nsys.exit(3)"
    )
    outcome = run_program(program, processes=40)
    assert outcome.out == "True All is well.\n"
    assert outcome.how == ("agent_failed", False, 1)


def test_a_flood_of_output_is_cut_and_ended(run_program):
    outcome = run_program("while True: print('x' * 10000)", output_bytes=100000)
    assert outcome.how == ("agent_failed", False, 0)
    (command,) = outcome.kind("command")
    assert (command["limit"], command["truncated"]) == ("output", True)
    assert len(outcome.out) < 110000


WRITE_OUTSIDE = """
import os, sys
wrong = []
for place in ("/", "/etc/x", "/usr/x", "/opt/agent/agent.py", "/opt/agent/task.md", "/opt/door/door.py", "/home/agent/x", "HOST"):
    try:
        with open(place if os.path.splitext(place)[1] or place[-1] == "x" else place + "/x", "a") as f:
            f.write("x")
        wrong.append(place)
    except OSError:
        pass
os.symlink("/etc/passwd", "link")
print(wrong)
"""


def test_writing_outside_fails_and_the_run_is_whole(run_program, tmp_path):
    outcome = run_program(WRITE_OUTSIDE.replace("HOST", str(tmp_path)))
    assert outcome.out == "[]\n"
    assert outcome.how == ("declared_done", True, 0)
    assert not (tmp_path / "x").exists()
    assert outcome.kind("tree")[0]["changes"][0]["link"] is True


def test_asking_on_past_the_limit_ends_the_agent(run_program):
    program = ASK + (
        "import time\nwhile True:\n    try:\n        ask()\n    except urllib.error.HTTPError as e:\n"
        "        print(e.code, flush=True)\n        time.sleep(0.05)\n"
    )
    outcome = run_program(program, max_steps=3)
    assert outcome.how == ("step_limit", False, 3)
    assert set(outcome.out.split()) == {"403"}
    assert outcome.kind("command")[0]["limit"] == "requests"


@pytest.mark.parametrize(("fail", "status"), [("server_error", 500), ("overflow", 400), ("closed", None)])
def test_an_end_after_a_failed_request_is_the_servers(run_program, fail, status):
    outcome = run_program(ASK + "ask()", scenario=f"about: fails\nsteps:\n- {{fail: {fail}}}\n")
    assert outcome.how == ("server_error", False, 1)
    assert outcome.stop.status == status


def test_bad_runs_do_not_stop_the_ones_after_them(tmp_path):
    """One after the other in one process, as a sweep runs them; no thread and no folder is left behind."""
    programs = {"a": "raise SystemExit(9)", "b": "while True: print('x' * 9999)", "c": ASK + "print(ask())"}
    before = threading.active_count()
    reasons = []
    for name, program in programs.items():
        outcome = execute(planned(tmp_path, program, "sandbox.output_bytes=100000", name=name))
        reasons.append(outcome.result["stop_reason"])
        assert not (outcome.folder / "copy").exists()
    assert reasons == ["agent_failed", "agent_failed", "declared_done"]
    until = time.monotonic() + 10
    while threading.active_count() > before + 1 and time.monotonic() < until:
        time.sleep(0.05)
    assert threading.active_count() <= before + 1  # the sandbox launcher's one thread stays
