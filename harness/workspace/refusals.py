"""The kernel filter of every sandbox: calls that reach past its namespaces, or take memory nobody counts, do not exist inside.

- User namespaces: inside one of its own a process has rights over what it makes there, and so reaches far more of the kernel.
- Kinds of sockets that no network namespace holds (vsock leads to the machine's host) or that need no network at all but the
  kernel's rarely used parts. Unix, internet and netlink sockets stay.
- Keyrings, which processes inherit from whoever started the harness.
- Files in memory, System V memory and message queues, which belong to no process's count and to no disk, and outlive a command.
- Parts of the kernel with a record of ways out: bpf, perf, userfaultfd, io_uring.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

CLONE_NEWUSER = 0x10000000
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in the kernel's struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
X32 = 0x40000000
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK


@dataclass(frozen=True)
class Machine:
    """The audit number of an architecture and its numbers of the calls the filter knows (the kernel's unistd headers)."""

    audit: int
    clone: int
    unshare: int
    socket: int
    missing: dict[str, int]


MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        clone=56,
        unshare=272,
        socket=41,
        missing={
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "memfd_create": 319,
            "shmget": 29,
            "semget": 64,
            "msgget": 68,
            "mq_open": 240,
            "bpf": 321,
            "perf_event_open": 298,
            "userfaultfd": 323,
        },
    ),
    "aarch64": Machine(
        0xC00000B7,
        clone=220,
        unshare=97,
        socket=198,
        missing={
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "memfd_create": 279,
            "shmget": 194,
            "semget": 190,
            "msgget": 186,
            "mq_open": 180,
            "bpf": 280,
            "perf_event_open": 241,
            "userfaultfd": 282,
        },
    ),
}
# The same number everywhere. The flags of clone3 can't be read by a filter; without it the C library uses clone.
MISSING_EVERYWHERE = {"clone3": 435, "memfd_secret": 447, "io_uring_setup": 425}


def refusals() -> bytes | None:
    """The filter in the kernel's classic BPF form, None for a machine whose numbers are not known here.

    Calls of another architecture (x32 too) are refused: they have other numbers.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return None
    missing = sorted({*machine.missing.values(), *MISSING_EVERYWHERE.values()})
    # Names in the place of jump distances; a check that does not jump goes on with the next line.
    program: list[tuple[int, str | None, str | None, int] | str] = [
        (LOAD, None, None, ARCHITECTURE),
        (JUMP_IF_EQUAL, None, "missing", machine.audit),
        (LOAD, None, None, CALL),
        (JUMP_IF_AT_LEAST, "missing", None, X32),
        *((JUMP_IF_EQUAL, "missing", None, number) for number in missing),
        (JUMP_IF_EQUAL, "flags", None, machine.clone),
        (JUMP_IF_EQUAL, "flags", None, machine.unshare),
        (JUMP_IF_EQUAL, "family", "allowed", machine.socket),
        "flags",
        (LOAD, None, None, FIRST_ARGUMENT),
        (JUMP_IF_ANY_BIT, "forbidden", "allowed", CLONE_NEWUSER),
        "family",
        (LOAD, None, None, FIRST_ARGUMENT),
        *((JUMP_IF_EQUAL, "allowed", None, family) for family in FAMILIES),
        (RETURN, None, None, REFUSE | errno.EAFNOSUPPORT),
        "allowed",
        (RETURN, None, None, ALLOW),
        "forbidden",
        (RETURN, None, None, REFUSE | errno.EPERM),
        "missing",
        (RETURN, None, None, REFUSE | errno.ENOSYS),
    ]
    return _assembled(program)


def _assembled(program: list[tuple[int, str | None, str | None, int] | str]) -> bytes:
    lines = [line for line in program if not isinstance(line, str)]
    places, count = {}, 0
    for line in program:
        if isinstance(line, str):
            places[line] = count
        else:
            count += 1
    return b"".join(
        struct.pack("=HBBI", code, *(0 if to is None else places[to] - at - 1 for to in (true, false)), value)
        for at, (code, true, false, value) in enumerate(lines)
    )
