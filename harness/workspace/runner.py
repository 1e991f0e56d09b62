"""Runs one command after another for the harness. Inside the sandbox it is process 1.

It needs the standard library only, and little of that, so that it starts in a few milliseconds.

Requests come in on file descriptor 0, answers go out on 1; both are a 4-byte length (big endian) and that much JSON.
A request holds argv, cwd, env, timeout_s, output_bytes, limits {as, fsize, nofile, nproc}, input (text for stdin, null for an empty
stdin) and report (true to give the command a pipe as descriptor 3, whose bytes come back as `report`). While a command runs, the
message {"stop": NAME} ends it with the limit NAME. The end of descriptor 0 is the harness's death: everything ends.

A byte on descriptor 2, a file that nobody waits for, says that a command was begun. When it has ended, the answer goes out:
exit_code (128+N for a signal, null when it was ended here), timed_out, limit, stdout, stderr, output_chars, truncated and report.
A command has ended when its shell has: whatever it left running is killed first. No environment, current folder or process outlives
a command. Where a command changed what this process hands on (limits, priority, processors: they share a user), this process ends
after the answer and the harness starts another for the next command.
As process 1 this kills everything it sees; outside a process namespace (`plain`) it kills the processes below it.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
import warnings  # noqa: F401 - else os.execvpe imports it in every command's child, for more than a millisecond

CHUNK = 1 << 16
FLOOD = 8  # a command that prints this many times what is kept is ended
TICK_S = 0.2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
CONTINUATION = bytes(range(0x80, 0xC0))
IOPRIO_GET = {"x86_64": 252, "aarch64": 31}  # the C library has no function for it


class Capture:
    """The first and the last half of `room` bytes of a stream, and how many characters passed."""

    def __init__(self, room):
        self.half = max(room // 2, 1)
        self.head, self.tail, self.kept = bytearray(), [], 0
        self.bytes = self.chars = 0

    def add(self, data):
        self.bytes += len(data)
        self.chars += len(data.translate(None, CONTINUATION))
        free = self.half - len(self.head)
        self.head += data[:free]
        rest = data[free:]
        if rest:
            self.tail.append(rest)
            self.kept += len(rest)
            while self.kept - len(self.tail[0]) >= self.half:
                self.kept -= len(self.tail.pop(0))

    @property
    def truncated(self):
        return self.bytes > 2 * self.half

    def text(self):
        tail = b"".join(self.tail)
        if not self.truncated:
            return (bytes(self.head) + tail).decode("utf-8", "replace")
        head, tail = bytes(self.head).decode("utf-8", "replace"), tail[-self.half :].decode("utf-8", "replace")
        return f"{head}\n[... {self.chars - len(head) - len(tail)} characters left out ...]\n{tail}"


def read_exactly(fd, count):
    data = b""
    while len(data) < count:
        part = os.read(fd, count - len(data))
        if not part:
            return None
        data += part
    return data


def receive(fd):
    head = read_exactly(fd, 4)
    body = head and read_exactly(fd, struct.unpack(">I", head)[0])
    return json.loads(body) if body else None


def send(fd, message):
    body = json.dumps(message).encode()
    data = memoryview(struct.pack(">I", len(body)) + body)
    while data:
        data = data[os.write(fd, data) :]


def below(pid):
    """The processes below `pid`, found in /proc; each thread of a process has children of its own."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")  # noqa: PTH208
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{parent}/task/{thread}/children") as f:  # noqa: PTH123
                    children = [int(word) for word in f.read().split()]
            except OSError:
                continue
            found += children
            todo += children
    return found


def kill_everything(alone, group):
    """Ends every process of the command and reaps them all but the shell itself, which `wait_for` has taken already."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        victims = [] if alone else below(os.getpid())
        try:
            if alone:
                os.kill(-1, signal.SIGKILL)
            elif group:
                os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
        for pid in victims:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        group = None
        time.sleep(0.001)


def memory_bytes():
    """Memory of everything in this process namespace but process 1, pages of files left out.

    Shared memory counts once for each process that maps it, as nothing that every process may read tells whose it is.
    """
    total = 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and name != "1":
            try:
                with open(f"/proc/{name}/status") as f:  # noqa: PTH123
                    lines = f.read().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
    return total * 1024


def child(request, fds):
    """Becomes the command; never returns."""
    try:
        os.setsid()
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        for sig in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(sig, signal.SIG_DFL)
        os.chdir(request["cwd"])
        limits = {"core": 0, "cpu": int(request["timeout_s"]) + 2, **request["limits"]}
        for name, value in limits.items():
            kind = getattr(resource, "RLIMIT_" + name.upper())
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            with contextlib.suppress(ValueError):  # macOS has limits that it does not take
                resource.setrlimit(kind, (value, value))
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except BaseException as e:
        os.write(2, f"the command could not be started: {e}\n".encode())
    finally:
        os._exit(127)


def stdin_for(text):
    """A file that holds `text`, or the null device."""
    if text is None:
        return os.open("/dev/null", os.O_RDONLY)
    import tempfile  # costly to import, and needed for grading only

    with tempfile.TemporaryFile() as f:
        f.write(text.encode())
        f.seek(0)
        return os.dup(f.fileno())


def execute(request, control, alone):
    """Runs one command to its end; None when the harness has gone meanwhile."""
    pipes = [os.pipe() for _ in range(3 if request["report"] else 2)]
    stdin = stdin_for(request["input"])
    pid = os.fork()
    if pid == 0:
        child(request, [stdin] + [w for _, w in pipes])
    os.close(stdin)
    for _, w in pipes:
        os.close(w)
    captures = {}
    for r, _ in pipes:
        os.set_blocking(r, False)
        captures[r] = Capture(request["output_bytes"] // 2)
    ended = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    status, limit = watch(request, captures, pid, ended, control, alone)
    if status is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    kill_everything(alone, pid)
    for r, capture in captures.items():
        pump(r, capture, most=64 * CHUNK)
        os.close(r)
    if ended is not None:
        os.close(ended)
    if limit == "gone":
        return None
    out, err, *report = captures.values()
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {
        "exit_code": code if code is None or code >= 0 else 128 - code,
        "timed_out": limit == "time",
        "limit": limit,
        "stdout": out.text(),
        "stderr": err.text(),
        "output_chars": out.chars + err.chars,
        "truncated": out.truncated or err.truncated,
        "report": report[0].text() if report else None,
    }


def pump(fd, capture, most=CHUNK):
    """Takes what is waiting in a pipe, at most `most` bytes; False at its end."""
    while most > 0:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        capture.add(data)
        most -= len(data)
    return True


def watch(request, captures, pid, ended, control, alone):
    """Reads output until the shell ends (its wait status, None) or a limit is hit (None, the limit)."""
    poller = select.poll()
    for fd in [*captures, control] + ([] if ended is None else [ended]):
        poller.register(fd, select.POLLIN)
    deadline = time.monotonic() + request["timeout_s"]
    next_tick = time.monotonic() + TICK_S
    pause = TICK_S if ended is not None else 0.01
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return None, "time"
        for fd, _ in poller.poll(int(min(left, pause) * 1000) + 1):
            if fd in captures:
                if not pump(fd, captures[fd]):
                    poller.unregister(fd)
            elif fd == control:
                message = receive(control)
                return None, message["stop"] if message else "gone"
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status, None
        if sum(c.bytes for c in captures.values()) > FLOOD * request["output_bytes"]:
            return None, "output"
        if alone and time.monotonic() > next_tick:
            next_tick = time.monotonic() + TICK_S
            if memory_bytes() > request["limits"]["as"]:
                return None, "memory"


def standing():
    """What every command inherits from this process, and what another process of the same user may change about it."""
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    found = [limits, os.getpriority(os.PRIO_PROCESS, 0)]
    if sys.platform == "linux":
        found += [os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0).sched_priority]
        number = IOPRIO_GET.get(os.uname().machine)
        found.append(number and ctypes.CDLL(None).syscall(number, 1, 0))
    return found


def settle(alone, uid):
    """Gives up root for `uid` and makes this process unreadable to the commands, which share its user."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        if alone:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        else:
            prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main():
    alone = sys.argv[1] == "sandbox"
    if alone and os.getpid() != 1:
        sys.exit("runner: not process 1 of its own namespace")
    settle(alone, int(sys.argv[2]) if len(sys.argv) > 2 else None)
    control, answers = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    first = standing()
    send(answers, {"ready": True})
    while True:
        request = receive(control)
        if request is None:
            return
        if "argv" not in request:  # a stop that came after its command had ended
            continue
        os.write(2, b".")
        answer = execute(request, control, alone)
        if answer is None:
            return
        changed = standing() != first
        send(answers, answer)
        if changed:
            return


if __name__ == "__main__":
    main()
