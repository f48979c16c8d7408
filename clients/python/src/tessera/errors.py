"""The exceptions of the client, one class per situation.

All derive from `TesseraError`. The message says what was wrong and what to do; `code` and
`reason` are for programs (the reasons are those of `tessera.v1.ErrorReason`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class Violation:
    """One argument and what is wrong with it."""

    field: str
    """Path in dots, such as `texts.0`; empty for the arguments as a whole."""
    description: str


@dataclass(frozen=True)
class Facts:
    """Facts about an error from the server's response; empty without a response."""

    status: int | None = None
    code: str | None = None
    reason: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: Sequence[Violation] = ()
    retry_after_s: float | None = None
    answered_at: datetime | None = None
    """By the server's clock."""


class TesseraError(Exception):
    """Base of all errors of this package."""

    def __init__(self, message: str, facts: Facts | None = None) -> None:
        super().__init__(message)
        facts = facts or Facts()
        self.message = message
        self.facts = facts
        self.status = facts.status
        """HTTP status of the answer; None when there was none."""
        self.code = facts.code
        """Code of Connect and gRPC, such as `not_found`."""
        self.reason = facts.reason
        """Reason from Tessera's catalogue, such as `TASK_NOT_FOUND`."""
        self.metadata = dict(facts.metadata)
        self.violations = list(facts.violations)
        """The arguments that were refused; empty for most errors."""
        self.retry_after_s = facts.retry_after_s
        """Seconds after which the server can be asked again; None when it does not say."""


class BadArguments(TesseraError):
    """The arguments do not fit the endpoint; `violations` names them. Nothing ran."""


class SchemaChanged(BadArguments):
    """The endpoint's schema has changed since this client read it. Nothing ran."""


class RequestTooLarge(BadArguments):
    """The arguments exceed the server's limit."""


class Unauthenticated(TesseraError):
    """The token is missing, unknown, expired or revoked. Set another by `client.token = …`."""


class PermissionDenied(TesseraError):
    """The token is valid, but lacks the required access."""


class NotFound(TesseraError):
    """The requested thing does not exist."""


class DeploymentNotFound(NotFound):
    """The deployment does not exist, or the token may not see it."""


class EndpointNotFound(NotFound):
    """The deployment has no endpoint of this name, or it is an api, not a task."""


class TaskNotFound(NotFound):
    """The task does not exist, or has expired."""


class ResultExpired(TaskNotFound):
    """The task existed, but its retention has ended and its result was deleted."""


class Conflict(TesseraError):
    """The request conflicts with the current state, such as a reused idempotency key."""


class NotFinished(Conflict):
    """The task has no result yet: `wait()` waits for it."""


class AlreadyStarted(Conflict):
    """The task is running already: `cancel(abort=True)` stops it."""


class AlreadyFinished(Conflict):
    """The task has ended and can no longer be cancelled."""


class TaskRestarted(Conflict):
    """The task began anew: the pieces of its result that were read are void."""


class TaskCancelled(TesseraError):
    """The task was cancelled and has no result: `retry()` runs it again."""


class CallFailed(TesseraError):
    """The function failed; the message is its own."""


class TaskFailed(CallFailed):
    """The task's function failed: `retry()` runs it again."""

    @property
    def failure_reason(self) -> str:
        """`error`, `timeout`, `worker_lost` or `expired`."""
        return self.metadata.get("failure_reason", "error")


class TooManyRequests(TesseraError):
    """A rate or concurrency limit was reached, and still was after every repetition."""


class QueueFull(TooManyRequests):
    """The queue of calls or tasks is full."""


class Unavailable(TesseraError):
    """The server or its database is unavailable, and still was after every repetition."""


class NotReady(Unavailable):
    """The deployment is starting, is stopped, or could not start."""


class ServerError(TesseraError):
    """An internal error of the server; its log has the details."""


class NotATesseraServer(TesseraError):
    """Something other than Tessera responds at this URL, such as a web page."""


class ConnectionBroken(TesseraError):
    """The connection broke before the response was complete."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent
        """False when the server cannot have seen the request; True when it may have."""


class ServerNotReached(ConnectionBroken):
    """No server is reachable at this URL. Nothing was sent."""


class TimedOut(ConnectionBroken, TimeoutError):
    """No response in time, or a task did not end within the `timeout` of `wait()`."""
