"""docs/server_logs.md names every field, wrapper and era that a document can hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from log_renderer import FORMATS

from analysis.server_log.rows import MAIN_FIELDS, OPTIONAL_FIELDS
from analysis.server_log.wrappers import ORDER

NAMED = set(re.findall(r"`([^`\n]+)`", (Path(__file__).parents[2] / "docs/server_logs.md").read_text()))


@pytest.mark.parametrize(
    "name", [*MAIN_FIELDS, *OPTIONAL_FIELDS, "run", "container", *ORDER, *sorted({f.era for f in FORMATS})]
)
def test_it_is_named(name):
    assert name in NAMED
