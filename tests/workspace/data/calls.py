"""System calls by number, for attempts.yaml; runs inside the sandbox."""

import ctypes
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)


def call(x86_64, aarch64, *arguments):
    done = libc.syscall(ctypes.c_long(x86_64 if platform.machine() == "x86_64" else aarch64), *arguments)
    print("ESCAPED" if done >= 0 else "refused", done, os.strerror(ctypes.get_errno()))
