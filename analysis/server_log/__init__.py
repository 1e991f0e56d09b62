"""llama-server logs of every format since 2023: one row per request.

Eras: A printf (b1413 to b2258), B structured text and JSON (to b3760), C wordy slot lines (to b9150), D reduced
(to b9828), E reduced more. Wrappers around the lines are seen through. See :class:`RequestRow` for what a row holds.
"""

from analysis.server_log.document import to_json
from analysis.server_log.errors import LogError
from analysis.server_log.notes import Event
from analysis.server_log.parser import LogStream, ParsedLog, parse, stream
from analysis.server_log.rows import RequestRow

__all__ = ["Event", "LogError", "LogStream", "ParsedLog", "RequestRow", "parse", "stream", "to_json"]
