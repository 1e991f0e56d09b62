"""fetch: reads a page from an allowed host. Off unless `agent.fetch_hosts` names hosts; size and time are bounded."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import httpx

from harness.agent.tools.base import Tool, ToolError
from harness.record.events import EventSink

MOST_BYTES = 200_000
TIMEOUT_S = 20.0
MOST_REDIRECTS = 5


def check_url(url: str, hosts: tuple[str, ...]) -> None:
    """Raises ToolError unless the URL is http(s), without user data, and its host (with port, if not the usual) is allowed."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as e:
        raise ToolError(f"{url} is not an address") from e
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        raise ToolError(f"{url} is not an http or https address")
    if (f"{host}:{port}" if port else host) not in hosts:
        raise ToolError(f"{host} is not an allowed host; allowed: {', '.join(hosts) or 'none'}")


def fetch_tool(hosts: tuple[str, ...], sink: EventSink) -> Tool:
    def fetch(url: str) -> str:
        # Redirects are followed by hand, so that none leads to a host that is not allowed.
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
            for _ in range(MOST_REDIRECTS + 1):
                check_url(url, hosts)
                data = b""
                with client.stream("GET", url) as answer:
                    if answer.is_redirect:
                        url = urljoin(url, answer.headers.get("location", ""))
                        continue
                    for chunk in answer.iter_bytes():
                        data += chunk
                        if len(data) > MOST_BYTES:
                            break
                    text = data[:MOST_BYTES].decode(answer.encoding or "utf-8", errors="replace")
                    sink.emit("note", kind="fetch", text=f"{answer.status_code} {url}, {len(data)} bytes")
                    if answer.is_error:
                        raise ToolError(f"{url} answered {answer.status_code}")
                    return text + (f"\n[cut at {MOST_BYTES} bytes]" if len(data) > MOST_BYTES else "")
        raise ToolError(f"more than {MOST_REDIRECTS} redirects")

    address = {"type": "string", "description": "an http or https address on an allowed host"}
    return Tool("fetch", "Read a page from an allowed host.", {"url": address}, fetch)
