"""What a function is given besides its arguments, and its end by an abort."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Any

from .executable import IncomingCall, ResponseHead
from .heads import CallRequest, CallResponse

current_call: ContextVar[IncomingCall | None] = ContextVar("tessera_current_call", default=None)
"""The call whose function is running; None outside of calls."""

_ABORTED = {
    "timeout": "the time of this call is up",
    "cancelled": "the task was cancelled",
    "shutdown": "the server is stopping",
    "caller_gone": "the caller is gone",
}


class Aborted(BaseException):
    """Raised in a function whose call was aborted.

    It is no ``Exception``, so that ``except Exception`` does not catch it: the call has ended for
    its caller, and the worker is killed if the function goes on for longer than the grace period:
    beside other calls, when they have ended, or after ``abort_grace``.
    """


class Log:
    """Writes lines to the log of the call and of the deployment.

    A worker may write 100 lines a second; of a call that writes faster, the last lines follow at
    its end, and lines before them are left out. Messages are cut at 8,192 characters.
    """

    __slots__ = ("_call",)

    def __init__(self, call: IncomingCall) -> None:
        self._call = call

    def debug(self, message: str, **fields: Any) -> None:
        self._call.outlet.log("debug", str(message), fields or None)

    def info(self, message: str, **fields: Any) -> None:
        self._call.outlet.log("info", str(message), fields or None)

    def warn(self, message: str, **fields: Any) -> None:
        self._call.outlet.log("warn", str(message), fields or None)

    def error(self, message: str, **fields: Any) -> None:
        self._call.outlet.log("error", str(message), fields or None)


class Context:
    """The call of a function: give a parameter this type, and it is passed.

    It is the same for ``api`` and ``task``, so that turning one into the other changes nothing.
    """

    __slots__ = ("_call", "_request", "_response", "log")

    def __init__(self, call: IncomingCall) -> None:
        self._call = call
        self._request: CallRequest | None = None
        self._response: CallResponse | None = None
        self.log = Log(call)

    @property
    def request(self) -> CallRequest:
        """The request, for an endpoint with the option ``headers``; any other raises.

        With a task it is stored: a retry sees the same one.
        """
        if self._request is None:
            if self._call.request is None:
                raise RuntimeError(
                    "the request is not shown to this endpoint: declare the headers that it "
                    'reads, headers=["x-tenant"], or [] for the URL alone'
                )
            self._request = CallRequest(self._call.request)
        return self._request

    @property
    def response(self) -> CallResponse:
        """What is said of the answer: status, headers, cookies. With a task it is stored."""
        if self._response is None:
            self._call.response = self._call.response or ResponseHead()
            self._response = CallResponse(self._call.response)
        return self._response

    @property
    def task_id(self) -> str:
        """The id of the task; for an api, of the request."""
        return self._call.task_id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; for an api always 1, unless idempotent."""
        return self._call.attempt

    @property
    def deadline(self) -> datetime:
        """When the call's time is up."""
        return datetime.fromtimestamp(self._call.deadline_seconds, timezone.utc)

    @property
    def aborted(self) -> bool:
        """True when nobody waits for the result any more."""
        return self._call.aborted is not None

    @property
    def traceparent(self) -> str | None:
        """The trace context of this call (https://www.w3.org/TR/trace-context/)."""
        return None if self._call.trace is None else self._call.trace.partition(" ")[0]

    @property
    def tracestate(self) -> str | None:
        """The header that belongs to ``traceparent``; None where there is none."""
        return None if self._call.trace is None else self._call.trace.partition(" ")[2] or None

    def check(self) -> None:
        """Raises ``Aborted`` if the call was aborted."""
        reason = self._call.aborted
        if reason is not None:
            raise Aborted(_ABORTED.get(reason, reason))

    def progress(self, fraction: float, message: str = "") -> None:
        """Reports the progress of a task: ``fraction`` is from 0 to 1. Does nothing in an api.

        At most one report per 50 ms is sent, and the last one always is.
        """
        self._call.outlet.progress(fraction, message)

    def usage(self, **units: float) -> None:
        """Reports what the call used, in units of the service: ``usage(prompt_tokens=120)``.

        It is counted for the caller's token (``tessera usage``), also where the function fails
        then. Several reports of a call add up, of at most 16 units; an amount is from 0 to 10¹².
        What cannot be counted is left out, and a line of the log says why.
        """
        self._call.outlet.usage(units)
