"""The state of one client: its deployment's schema, read on demand."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from . import errors
from .errors import Facts
from .refusal import not_tessera
from .repeat import Policy, exchange
from .schema import Endpoint, Schema, server
from .wire import Answer, Pause, Request, Steps


@dataclass
class Session:
    policy: Policy
    deployment: str | None = None
    """The deployment, if the URL is the platform's."""
    schema: Schema | None = None


def load_schema(session: Session, policy: Policy | None = None) -> Steps[Schema]:
    request = Request("GET", "/schema.json", harmless=True, what="read the schema")
    answer = yield from exchange(request, policy or session.policy)
    schema = Schema.parse(read_json(answer, request))
    if schema is None:
        raise not_tessera(answer, request)
    session.schema = schema
    return schema


def find(session: Session, name: str) -> Steps[Endpoint]:
    """Finds an endpoint; reads the schema again for an unknown one."""
    if name.startswith("/"):
        return server(name)
    if session.schema is None or name not in session.schema.endpoints:
        yield from load_schema(session)
    assert session.schema is not None
    endpoint = session.schema.endpoints.get(name)
    if endpoint is None:
        known = ", ".join(sorted(session.schema.endpoints)) or "none"
        text = f"{session.schema.name} has no endpoint {name}; its endpoints are: {known}"
        raise errors.EndpointNotFound(text, Facts(code="not_found", reason="ENDPOINT_NOT_FOUND"))
    return endpoint


def wait_ready(session: Session, timeout_s: float) -> Steps[None]:
    """Waits until the deployment accepts calls, and reads its schema."""
    end = time.monotonic() + timeout_s
    request = Request("GET", "/readyz", harmless=True, what="ask whether the server is ready")
    patience_s = min(session.policy.timeout_s, timeout_s)
    once = replace(session.policy, retries=0, timeout_s=patience_s)
    pause_s = 0.05
    while True:
        try:
            yield from exchange(request, once)
            yield from load_schema(session, once)
            return
        except (errors.Unavailable, errors.ConnectionBroken) as err:
            if time.monotonic() + pause_s > end:
                text = f"{session.policy.url} was not ready within {timeout_s:g} s: {err.message}"
                raise errors.NotReady(text) from err
        yield Pause(pause_s)
        pause_s = min(1.0, pause_s * 2)


def read_json(answer: Answer, request: Request) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError as err:
        raise not_tessera(answer, request) from err


def read_task(answer: Answer, request: Request) -> dict[str, Any]:
    """Reads a response about a task."""
    said = read_json(answer, request)
    if not isinstance(said, dict) or "task_id" not in said:
        raise not_tessera(answer, request)
    return said


def read_result(answer: Answer, request: Request) -> Any:
    """Reads a result: a file, a JSON value, or text."""
    kind = answer.headers.get("content-type", "")
    is_text = kind.startswith("text/plain")
    # What a mounted server has answered, of any type, says of which task it is.
    is_file = not {"content-disposition", "tessera-task-id"}.isdisjoint(answer.headers)
    if answer.file is not None and (is_text or is_file):
        return answer.file
    if answer.file is None and is_text:
        return answer.content.decode()
    if answer.file is None and kind.startswith("application/json"):
        return read_json(answer, request)
    raise not_tessera(answer, request)


def path(session: Session, endpoint: str, about: str | None = None) -> str:
    """The path of an endpoint, or below it; by its name, under which tasks are found too."""
    known = session.schema.endpoints.get(endpoint) if session.schema else None
    plain = quote(endpoint) if endpoint.startswith("/") else f"/{quote(endpoint, safe='')}"
    first = known.route if known else plain
    return first if about is None else f"{first.rstrip('/')}/{about}"
