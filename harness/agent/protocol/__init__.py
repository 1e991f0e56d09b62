"""Call protocols: native, text_json, constrained."""

from __future__ import annotations

from harness.agent.protocol.base import CallProtocol
from harness.agent.protocol.constrained import Constrained
from harness.agent.protocol.native import Native
from harness.agent.protocol.text_json import TextJson

PROTOCOLS: dict[str, type[CallProtocol]] = {p.name: p for p in (Native, TextJson, Constrained)}


def protocol(name: str) -> CallProtocol:
    """The protocol of that name; the names are checked at the settings' edge."""
    return PROTOCOLS[name]()
