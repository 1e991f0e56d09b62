"""A kernel filter that refuses new user namespaces, for sandboxes that bubblewrap itself can't refuse them to.

Inside a user namespace of its own a process has rights over what it makes there, and so reaches far more of the kernel.
bubblewrap's --disable-userns needs --unshare-user, which a sandbox started by root for another user does without.
"""

from __future__ import annotations

import errno
import platform
import struct

CLONE_NEWUSER = 0x10000000
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in the kernel's struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
CLONE3, X32 = 435, 0x40000000

# The audit number of the architecture, then its numbers of clone and unshare (the kernel's unistd headers).
MACHINES = {"x86_64": (0xC000003E, 56, 272), "aarch64": (0xC00000B7, 220, 97)}


def no_user_namespaces() -> bytes | None:
    """The filter in the kernel's classic BPF form, None for a machine whose numbers are not known here.

    Calls of another architecture (x32 too) are refused, and so is clone3, whose flags a filter can't read; the C library then
    uses clone.
    """
    if platform.machine() not in MACHINES:
        return None
    architecture, clone, unshare = MACHINES[platform.machine()]
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_IF_EQUAL, 0, 8, architecture),
        (LOAD, 0, 0, CALL),
        (JUMP_IF_AT_LEAST, 7, 0, X32),
        (JUMP_IF_EQUAL, 6, 0, CLONE3),
        (JUMP_IF_EQUAL, 1, 0, clone),
        (JUMP_IF_EQUAL, 0, 2, unshare),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_ANY_BIT, 1, 0, CLONE_NEWUSER),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
        (RETURN, 0, 0, REFUSE | errno.ENOSYS),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in program)
