"""The JSON document of a log: ``{"era", "wrapper", "requests": [...], "warnings": [...]}``.

Contract: :func:`write_json` writes the same document as :func:`to_json` returns, without holding its rows: whether
rows carry ``run`` or ``container`` is known only when the log is over, so they wait in an unnamed temporary file until then.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from typing import Any, TextIO

from analysis.server_log.parser import LogStream, ParsedLog


def to_json(parsed: ParsedLog) -> dict[str, Any]:
    """A parsed log as plain values for ``json.dump``."""
    keys = {"with_run": parsed.restarts > 0, "with_container": parsed.containers > 1}
    return {
        "era": parsed.era,
        "wrapper": parsed.wrapper,
        "requests": [row.as_dict(**keys) for row in parsed.requests],
        "warnings": parsed.warnings,
    }


def write_json(log: LogStream, out: TextIO) -> None:
    """Write the document of a log that has not been read yet. Nothing is written if the log raises."""
    with tempfile.TemporaryFile(prefix="server_log_") as waiting:
        rows = 0
        for row in log:
            pickle.dump(row, waiting, pickle.HIGHEST_PROTOCOL)
            rows += 1
        waiting.seek(0)
        keys = {"with_run": log.restarts > 0, "with_container": log.containers > 1}
        out.write(f'{{"era": {json.dumps(log.era)}, "wrapper": {json.dumps(log.wrapper)}, "requests": [')
        for index in range(rows):
            out.write(",\n " if index else "\n ")
            out.write(json.dumps(pickle.load(waiting).as_dict(**keys), ensure_ascii=False))
        out.write(f'\n], "warnings": {json.dumps(log.warnings, ensure_ascii=False)}}}\n')
