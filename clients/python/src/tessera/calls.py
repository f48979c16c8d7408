"""Calls and submits, as generators of steps (see `wire`)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import errors
from .errors import Facts, TesseraError
from .pieces import Pieces
from .repeat import exchange
from .schema import Endpoint
from .session import Session, find, load_schema, path, read_result
from .tasks import Replay, TaskRef, key_query, new_task, wait
from .wire import Answer, Request, Steps

_WHOLE = "application/json, */*;q=0.9"
"""What a call takes that wants the whole of a streamed result: JSON, or else the file."""


@dataclass(frozen=True)
class Options:
    """Options of a submit."""

    idempotency_key: str | None = None
    replay: Replay | None = None
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """Arguments of one call."""

    args: Sequence[Any]
    named: Mapping[str, Any]


def call(session: Session, name: str, given: Given) -> Steps[Any]:
    """Calls an endpoint. A task is submitted and waited for, which survives broken connections."""
    endpoint = yield from find(session, name)
    if endpoint.is_task:
        task = yield from submit(session, name, given, Options())
        return (yield from wait(session, task, timeout_s=None, reports=False))
    request = Request(
        "POST",
        path(session, name),
        headers={"accept": _WHOLE} if endpoint.streams else {},
        body=endpoint.body(given.args, given.named),
        to_file=endpoint.returns_file,
        what=f"call {name}",
    )
    answer = yield from _checked(session, endpoint, request)
    return read_result(answer, request)


def stream(session: Session, name: str, given: Given) -> Steps[Pieces]:
    """Calls an endpoint that streams; its pieces come with the body of the open answer."""
    endpoint = yield from find(session, name)
    if not endpoint.streams:
        # It may stream since.
        yield from load_schema(session)
        endpoint = yield from find(session, name)
    if not endpoint.streams or endpoint.is_task:
        text = f"{name} is no api that streams: call it without stream"
        raise errors.BadArguments(text, Facts(code="invalid_argument", reason="REQUEST_INVALID"))
    request = Request(
        "POST",
        path(session, name),
        headers={"accept": "text/event-stream"},
        body=endpoint.body(given.args, given.named),
        streams=True,
        what=f"stream {name}",
    )
    answer = yield from _checked(session, endpoint, request)
    return Pieces(answer, request)


def submit(session: Session, name: str, given: Given, options: Options) -> Steps[TaskRef]:
    endpoint = yield from find(session, name)
    if not endpoint.is_task:
        # It may have become a task since.
        yield from load_schema(session)
        endpoint = yield from find(session, name)
    if not endpoint.is_task:
        text = f"{name} is an api and no task: call it without submit"
        raise errors.EndpointNotFound(text, Facts(code="not_found", reason="ENDPOINT_NOT_A_TASK"))
    request = Request(
        "POST",
        path(session, name, "submit"),
        query={**options.query, **key_query(options.idempotency_key, options.replay)},
        headers={
            "idempotency-key": options.idempotency_key or uuid.uuid4().hex,
            # The name of a mounted server is its path; the arguments are a request.
            **({"tessera-queue": "arguments"} if name.startswith("/") else {}),
        },
        body=endpoint.body(given.args, given.named),
        harmless=True,
        what=f"submit {name}",
    )
    answer = yield from _checked(session, endpoint, request)
    return new_task(name, answer, request)


def _checked(session: Session, endpoint: Endpoint, request: Request) -> Steps[Answer]:
    """Sends the call; refused arguments may mean that the schema has changed since."""
    try:
        return (yield from exchange(request, session.policy))
    except (errors.BadArguments, errors.EndpointNotFound) as err:
        is_server = endpoint.name.startswith("/")
        if is_server or err.reason not in {
            "ARGUMENTS_INVALID",
            "ENDPOINT_NOT_FOUND",
            "ENDPOINT_NOT_A_TASK",
        }:
            raise
        refused: TesseraError = err
    try:
        yield from load_schema(session)
    except TesseraError:
        raise refused from None
    now = session.schema.endpoints.get(endpoint.name) if session.schema else None
    if now == endpoint:
        raise refused
    change = "is gone" if now is None else "takes or gives something else now"
    text = (
        f"{endpoint.name} {change}, since this client first asked; it knows the new schema from "
        f"now on: change the call if it has to be, and call again ({refused.message})"
    )
    raise errors.SchemaChanged(text, refused.facts) from refused
