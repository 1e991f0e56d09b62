"""What the double answers instead of a reply, as an exception on the way to the HTTP answer."""

from __future__ import annotations

from typing import Any

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    500: "server_error",
    501: "not_supported_error",
    503: "unavailable_error",
}


class Refused(Exception):
    """An HTTP error answer in llama-server's form; `fields` come after code, message and type.

    latency_s: seconds to wait before it is sent.
    """

    latency_s = 0.0

    def __init__(self, status: int, message: str, kind: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind or TYPES[status]
        self.fields = fields

    def body(self) -> dict[str, Any]:
        error = {"code": self.status, "message": self.message, "type": self.kind}
        if self.status == 404:  # comes from another place in llama-server, with its keys in another order
            error = {"message": self.message, "type": self.kind, "code": self.status}
        return {"error": error | self.fields}
