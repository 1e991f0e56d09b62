"""The one way out of the sandbox: 127.0.0.1:PORT inside it, a Unix socket that the harness laid in behind it.

    python door.py SOCKET PORT PROGRAM [ARGUMENT...]

Listens, leaves a process behind that carries the bytes, and becomes the program, so that its exit status is its own. Standard
library only: it runs where nothing of the harness is. The carrier is one process with one thread, because an agent that has
used up its processes must still be able to speak; it is nobody's child, so that no `wait` of the agent meets it.
"""

import asyncio
import contextlib
import os
import socket
import sys

CHUNK = 1 << 16


async def carry(reader, writer):
    """Bytes one way until their end, which is handed on."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


async def connect(path, reader, writer):
    """One connection: over when the harness has closed its side."""
    try:
        far_reader, far_writer = await asyncio.open_unix_connection(path)
    except OSError:
        writer.close()
        return
    out = asyncio.create_task(carry(reader, far_writer))
    try:
        await carry(far_reader, writer)
    finally:
        out.cancel()
        for each in (writer, far_writer):
            each.close()


async def serve(listener, path):
    server = await asyncio.start_server(lambda r, w: connect(path, r, w), sock=listener)
    await server.serve_forever()


def leave_behind(listener, path):
    """Forks twice; the grandchild carries bytes for as long as the sandbox stands."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    try:
        asyncio.run(serve(listener, path))
    finally:
        os._exit(0)


def main():
    path, port, *argv = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    leave_behind(listener, path)
    listener.close()
    try:
        os.execvp(argv[0], argv)
    except OSError as e:
        sys.exit(f"the agent could not be started: {argv[0]}: {e.strerror}")


if __name__ == "__main__":
    main()
