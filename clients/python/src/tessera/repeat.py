"""The retry policy: which requests are repeated, and when.

A request is repeated only where that is safe: when the connection failed before anything was
sent, when the server refused it before it began (its queue was full, no worker was free), or when
it is idempotent (`harmless`): reading, cancelling, and submitting or retrying a task with its
idempotency key. An api call whose response was lost may have run, so it is never repeated; the
caller gets the error.

Delays use exponential backoff with full jitter, and are at least as long as `Retry-After` asks
for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

from . import errors
from .errors import TesseraError
from .refusal import refusal
from .wire import Answer, Pause, Request, Send, Steps

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 8.0
LONGEST_RETRY_AFTER_S = 60.0
"""Who is asked to wait longer hears of it instead."""

LARGE_BYTES = 16 * 1024 * 1024
"""Of a body that may have been too large for the server."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)

_NOT_BEGUN = {"QUEUE_FULL", "NO_WORKER", "SERVER_BUSY", "RATE_LIMITED", "KEY_LIMITED"}

_TRANSIENT = (errors.TooManyRequests, errors.Unavailable)

_FOR_PEOPLE = {"DEPLOYMENT_STOPPED", "DEPLOYMENT_FAILED", "BUDGET_SPENT"}
"""Unavailable, but not for a while: somebody has to do something."""


@dataclass(frozen=True)
class Policy:
    url: str
    timeout_s: float
    retries: int
    """How often a request is sent again at most."""


def exchange(request: Request, policy: Policy) -> Steps[Answer]:
    """Sends a request, with repetitions, until a 2xx response; raises a `TesseraError`."""
    tries = 0
    while True:
        tries += 1
        try:
            answer: Answer = yield Send(request)
        except httpx.RequestError as err:
            if isinstance(err, httpx.LocalProtocolError):
                raise TesseraError(f"{request.what} cannot be sent: {err}") from err
            problem: TesseraError = broken(err, request, policy)
            cause: Exception | None = err
            again = isinstance(err, _NOT_SENT) or _is_harmless(request)
        else:
            if 200 <= answer.status < 300:
                return answer
            problem, cause = refusal(answer, request), None
            again = may_repeat(problem, request)
        asked_s = problem.retry_after_s or 0.0
        if not again or tries > policy.retries or asked_s > LONGEST_RETRY_AFTER_S:
            raise problem from cause
        range_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tries - 1))
        yield Pause(asked_s + random.uniform(0, range_s))


def _is_harmless(request: Request) -> bool:
    return request.harmless and (request.body is None or request.body.repeatable)


def may_repeat(problem: TesseraError, request: Request) -> bool:
    """Whether it is safe to repeat a request that was refused, and may help."""
    if not isinstance(problem, _TRANSIENT) or problem.reason in _FOR_PEOPLE:
        return False
    if problem.reason in _NOT_BEGUN:
        return request.body is None or request.body.repeatable
    return _is_harmless(request)


def broken(err: httpx.RequestError, request: Request, policy: Policy) -> TesseraError:
    """Returns the exception for a request whose connection broke."""
    url, what = policy.url, request.what
    if isinstance(err, httpx.PoolTimeout):
        text = (
            f"{what}: all connections of this client were busy for {policy.timeout_s:g} s: "
            "make fewer calls at a time, or use more clients"
        )
        return errors.TimedOut(text, sent=False)
    if isinstance(err, _NOT_SENT):
        text = (
            f"{what}: {url} could not be reached ({err or type(err).__name__}): "
            "check that the server runs and that host and port are right"
        )
        return errors.ServerNotReached(text, sent=False)
    fate = _fate(request)
    if isinstance(err, httpx.TimeoutException):
        text = (
            f"{what}: no answer from {url} within {policy.timeout_s:g} s: {fate}; "
            "a larger timeout= of the client waits longer"
        )
        return errors.TimedOut(text, sent=True)
    detail = str(err) or type(err).__name__
    if request.body is not None and (request.body.length or LARGE_BYTES) >= LARGE_BYTES:
        detail += "; servers also cut off what is larger than they take"
    return errors.ConnectionBroken(
        f"{what}: the connection to {url} broke ({detail}): {fate}", sent=True
    )


def _fate(request: Request) -> str:
    """Decides whether a request without a response may have run, and what to raise."""
    if request.method == "GET":
        return "nothing was changed; ask again"
    key = request.headers.get("idempotency-key")
    if key is not None:
        how = "retry(" if request.path.endswith("/retry") else "submit again with_options("
        return f"it may have arrived; to have it done once, {how}idempotency_key={key!r})"
    if request.harmless:
        return "it may have arrived; repeating it does no harm"
    return (
        "it was not repeated, because the function may have run; call again if running twice "
        "does no harm, or make the endpoint a task, which can be submitted safely"
    )
