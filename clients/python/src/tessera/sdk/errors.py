"""The errors that an endpoint raises to choose what its caller gets."""

from __future__ import annotations

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
