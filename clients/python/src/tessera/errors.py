"""Everything that a client raises of its own accord, one class per situation.

All of them are a `TesseraError`. The message says what was wrong and what to do; `code` and
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
    """What a server's answer says of an error; all of it is empty where there was no answer."""

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
        """After so many seconds the server can be asked again; None when it does not say."""


class BadArguments(TesseraError):
    """The arguments do not fit the endpoint; `violations` names them. Nothing ran."""


class SchemaChanged(BadArguments):
    """The endpoint takes other arguments than when this client first asked. Nothing ran."""


class RequestTooLarge(BadArguments):
    """The arguments are larger than the server takes."""


class Unauthenticated(TesseraError):
    """No token, or one that is unknown, expired or revoked. `client.token = …` sets another."""


class PermissionDenied(TesseraError):
    """The token is valid, but not for this."""


class NotFound(TesseraError):
    """What was asked for is not there."""


class DeploymentNotFound(NotFound):
    """No such deployment, or none that the token may see."""


class EndpointNotFound(NotFound):
    """The deployment has no endpoint of this name, or it is an api and no task."""


class TaskNotFound(NotFound):
    """No such task, or it has expired."""


class ResultExpired(TaskNotFound):
    """The task was there; its retention has ended, and its result is deleted."""


class Conflict(TesseraError):
    """The state of things does not allow it, such as an idempotency key of another call."""


class NotFinished(Conflict):
    """The task has no result yet: `wait()` waits for it."""


class AlreadyStarted(Conflict):
    """The task runs already: `cancel(abort=True)` stops it nevertheless."""


class AlreadyFinished(Conflict):
    """The task has ended and cannot be cancelled any more."""


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
    """The server takes no more at the moment, and said so after every repetition."""


class QueueFull(TooManyRequests):
    """As many calls or tasks wait as may."""


class Unavailable(TesseraError):
    """The server or its database is away, or shutting down, and was after every repetition."""


class NotReady(Unavailable):
    """The deployment is starting, is stopped, or could not start."""


class ServerError(TesseraError):
    """A defect of the server; its log has the details."""


class NotATesseraServer(TesseraError):
    """Something else answers at this URL, with a web page for instance."""


class ConnectionBroken(TesseraError):
    """The connection broke before the answer was there."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent
        """False when the server cannot have seen the request; True when it may have."""


class ServerNotReached(ConnectionBroken):
    """Nothing listens at this URL, or the way there is blocked. Nothing was sent."""


class TimedOut(ConnectionBroken, TimeoutError):
    """No answer came in time, or a task did not end within the `timeout` of `wait()`."""
