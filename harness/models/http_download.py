"""The whole file over HTTP: appended to a `.part` file, resumed with a Range request.

Nothing here judges the content: that is left to the digest of the whole.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx

from harness.models.errors import SourceFailed
from harness.models.progress import FetchProgress
from harness.models.settings import StoreSettings
from harness.models.sizes import human_size, require_space

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


def download_url(
    url: str, part: Path, size: int | None, what: str, settings: StoreSettings, say: FetchProgress
) -> None:
    """Bring `part` to the length of the file at `url` (`size` bytes where known), keeping what it already holds.

    A connection that breaks after bytes have come is resumed, up to `settings.retries` times without a new byte in
    between; a server that was never reached fails at once. Raises SourceFailed, ModelError when the disk is too small.
    """
    reached, idle = False, 0
    with _client(settings) as client:
        while True:
            before = _length(part)
            if size is not None and before == size:
                return
            try:
                _continue(client, url, part, size, what, say)
                return
            except httpx.HTTPError as error:
                after = _length(part)
                reached = reached or after > before
                idle = 0 if after > before else idle + 1
                reason = str(error) or type(error).__name__
                if not reached:
                    raise SourceFailed(reason) from None
                if idle >= settings.retries:
                    raise SourceFailed(f"the connection broke {idle} times without a new byte: {reason}") from None
                say.say(f"{what}: the connection broke at {human_size(after)}: resuming ({reason})")
                time.sleep(settings.retry_wait)
            except httpx.InvalidURL as error:
                raise SourceFailed(f"{url}: {error}") from None


def _client(settings: StoreSettings) -> httpx.Client:
    # Encoded replies have no ranges of the file's own bytes.
    headers = {"Accept-Encoding": "identity"}
    try:
        return httpx.Client(follow_redirects=True, timeout=settings.timeout, headers=headers)
    except (ImportError, ValueError) as error:
        raise SourceFailed(f"the proxy set in the environment cannot be used: {error}") from None


def _continue(client: httpx.Client, url: str, part: Path, size: int | None, what: str, say: FetchProgress) -> None:
    have = _length(part)
    if size is not None and have > size:
        part.unlink()
        have = 0
    with client.stream("GET", url, headers={"Range": f"bytes={have}-"} if have else {}) as reply:
        if reply.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            if reply.headers.get("Content-Range") == f"bytes */{have}":
                return
            part.unlink(missing_ok=True)
            raise SourceFailed(
                f"the file there is shorter than the {human_size(have)} already here, which were dropped"
            )
        if reply.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            raise SourceFailed(f"HTTP {reply.status_code} {reply.reason_phrase}".rstrip())
        have, total = _extent(reply, have)
        if size is not None and total is not None and total != size:
            raise SourceFailed(f"the file there has {total} bytes, not {size}")
        total = total if total is not None else size
        if total is not None:
            require_space(part.parent, total - have)
        with part.open("ab") as file:
            file.truncate(have)
            # No chunk size: gathering a larger chunk would lose it when the connection breaks.
            for chunk in reply.iter_raw():
                file.write(chunk)
                have += len(chunk)
                say.at(what, have, total)
        if total is not None and have < total:
            raise httpx.ReadError(f"the reply ended at {have} of {total} bytes")


def _extent(reply: httpx.Response, have: int) -> tuple[int, int | None]:
    """Where the reply's bytes begin in the file, and the file's length if it tells."""
    if reply.status_code == httpx.codes.PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(reply.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != have:
            raise SourceFailed("the server answered a range request with another range")
        return have, None if match[2] == "*" else int(match[2])
    length = reply.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
