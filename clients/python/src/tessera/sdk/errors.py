"""The errors that an endpoint raises to choose what its caller gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .executable import CallError

ErrorCode = Literal[
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
]
"""Connect's and gRPC's error codes (https://connectrpc.com/docs/protocol#error-codes)."""


_CODES: Mapping[int, str] = {
    400: "invalid_argument",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    408: "deadline_exceeded",
    409: "aborted",
    410: "not_found",
    412: "failed_precondition",
    413: "resource_exhausted",
    415: "invalid_argument",
    422: "invalid_argument",
    424: "failed_precondition",
    428: "failed_precondition",
    429: "resource_exhausted",
    499: "canceled",
    501: "unimplemented",
    502: "unavailable",
    503: "unavailable",
    504: "deadline_exceeded",
}
"""Connect's codes by HTTP status; the closest one where Connect has none."""


def code_of_status(status: int) -> str:
    """Connect's code for an HTTP status."""
    return _CODES.get(status, "invalid_argument" if status < 500 else "internal")


class EndpointError(CallError):
    """Raise it from an endpoint to fail with a code of your choice.

    The caller gets the message; the traceback and the cause stay in the log.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message, code=code)


class BadInput(EndpointError):
    """Raise it from an endpoint when its arguments are wrong: ``invalid_argument``, HTTP 400."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid_argument", message)
