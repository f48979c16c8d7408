"""Maps error responses to exceptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from . import errors
from .errors import Facts, TesseraError, Violation
from .wire import Answer, Request

_BY_REASON: Mapping[str, type[TesseraError]] = {
    "ARGUMENTS_INVALID": errors.BadArguments,
    "REQUEST_INVALID": errors.BadArguments,
    "BODY_MALFORMED": errors.BadArguments,
    "CONTENT_TYPE_UNSUPPORTED": errors.BadArguments,
    "BODY_TOO_LARGE": errors.RequestTooLarge,
    "DEPLOYMENT_NOT_FOUND": errors.DeploymentNotFound,
    "ENDPOINT_NOT_FOUND": errors.EndpointNotFound,
    "ENDPOINT_NOT_A_TASK": errors.EndpointNotFound,
    "TASK_NOT_FOUND": errors.TaskNotFound,
    "TASK_NOT_FINISHED": errors.NotFinished,
    "TASK_CANCELLED": errors.TaskCancelled,
    "TASK_FAILED": errors.TaskFailed,
    "TASK_ALREADY_STARTED": errors.AlreadyStarted,
    "TASK_FINISHED": errors.AlreadyFinished,
    "TASK_RESTARTED": errors.TaskRestarted,
    "CALL_FAILED": errors.CallFailed,
    "CALL_TIMEOUT": errors.CallFailed,
    "WORKER_LOST": errors.CallFailed,
    "OUTPUT_INVALID": errors.CallFailed,
    "RESULT_TOO_LARGE": errors.CallFailed,
    "QUEUE_FULL": errors.QueueFull,
    "NO_WORKER": errors.NotReady,
    "DEPLOYMENT_STOPPED": errors.NotReady,
    "DEPLOYMENT_FAILED": errors.NotReady,
}

_BY_STATUS: Mapping[int, type[TesseraError]] = {
    400: errors.BadArguments,
    401: errors.Unauthenticated,
    403: errors.PermissionDenied,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.RequestTooLarge,
    415: errors.BadArguments,
    429: errors.TooManyRequests,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
}

_BY_CODE: Mapping[str, type[TesseraError]] = {
    # HTTP has no status of its own for it.
    "failed_precondition": errors.Conflict,
}

_UNAUTHENTICATED = (
    "make a token that is valid, set it with client.token = …, and call again; "
    "tasks that were submitted go on meanwhile"
)

_MAX_QUOTED_CHARACTERS = 500

_GATEWAY = {502, 503, 504}


def refusal(answer: Answer, request: Request) -> TesseraError:
    """Returns the exception for a response that is not 2xx."""
    task_id = answer.headers.get("tessera-task-id")
    if task_id is not None:
        # A mounted server has answered its task with an error, in words of its own.
        quoted = answer.content.decode(errors="replace")[:_MAX_QUOTED_CHARACTERS]
        text = f"the server answered with {answer.status}" + (f": {quoted}" if quoted else "")
        facts = Facts(status=answer.status, reason="TASK_FAILED", metadata={"task_id": task_id})
        return errors.TaskFailed(text, facts)
    said = _read(answer)
    if said is None:
        return _from_others(answer, request)
    facts = _facts(said, answer)
    kind = (
        _BY_REASON.get(facts.reason or "")
        or _BY_CODE.get(facts.code or "")
        or _BY_STATUS.get(answer.status, errors.ServerError)
    )
    message = str(said.get("message") or f"HTTP {answer.status}")
    for violation in facts.violations:
        if violation.description not in message:
            message += f"; {violation.field} {violation.description}"
    if kind is errors.Unauthenticated:
        message = f"{message}; {_UNAUTHENTICATED}"
    return kind(message, facts)


def not_tessera(answer: Answer, request: Request) -> errors.NotATesseraServer:
    kind = answer.headers.get("content-type", "no content type")
    return errors.NotATesseraServer(
        f"{request.method} {request.path} was answered with HTTP {answer.status} and {kind}, "
        "which is not what a Tessera deployment answers: check the URL of the client "
        "(scheme, host, port, and that it is the deployment's own)",
        Facts(status=answer.status),
    )


def _from_others(answer: Answer, request: Request) -> TesseraError:
    """Describes a response of a proxy or of another program, without quoting it."""
    facts = Facts(status=answer.status, retry_after_s=retry_after_s(answer.headers))
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "somewhere else")
        message = (
            f"the URL of the client leads on to {where}: give the client the URL that it means"
        )
        return errors.NotATesseraServer(message, facts)
    if answer.status in _GATEWAY or answer.status == 429:
        message = f"HTTP {answer.status} from a proxy before the server: try again later"
        return _BY_STATUS[answer.status](message, facts)
    return not_tessera(answer, request)


def _read(answer: Answer) -> dict[str, Any] | None:
    """Parses an error in Tessera's format; None for any other body."""
    try:
        said = json.loads(answer.content)
    except ValueError:
        return None
    return said if isinstance(said, dict) and isinstance(said.get("code"), str) else None


def _facts(said: dict[str, Any], answer: Answer) -> Facts:
    reason: str | None = None
    metadata: Mapping[str, str] = {}
    violations: list[Violation] = []
    for detail in said.get("details") or []:
        debug = detail.get("debug") or {}
        if detail.get("type") == "google.rpc.ErrorInfo":
            reason = debug.get("reason")
            metadata = debug.get("metadata") or {}
        elif detail.get("type") == "google.rpc.BadRequest":
            for each in debug.get("fieldViolations") or []:
                violations.append(Violation(each.get("field", ""), each.get("description", "")))
    return Facts(
        status=answer.status,
        code=said["code"],
        reason=reason,
        metadata=metadata,
        violations=violations,
        retry_after_s=retry_after_s(answer.headers),
        answered_at=server_time(answer.headers),
    )


def retry_after_s(headers: httpx.Headers) -> float | None:
    """Parses `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3)."""
    text = headers.get("retry-after")
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (then - server_time(headers)).total_seconds())


def server_time(headers: httpx.Headers) -> datetime:
    """Returns the server's time, or ours if the response has none."""
    try:
        return parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return datetime.now(timezone.utc)
