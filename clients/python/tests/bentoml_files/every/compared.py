"""Answers of two servers, compared."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx

from .requests import Request

UNFINISHED = ("in_progress", "pending", "queued", "running")

OWN_HEADERS = frozenset(
    [
        # Of the connection.
        *("connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"),
        # Of BentoML.
        *("x-bentoml-request-id", "x-bentoml-trace-id"),
        # Of Tessera, about the call.
        *("tessera-worker", "x-request-id"),
    ]
)


BROKEN_OFF = 599


def ask(client: httpx.Client, request: Request) -> httpx.Response:
    """Sends it. An answer that is broken off on its way has a status of its own."""
    try:
        return _ask(client, request)
    except httpx.RemoteProtocolError as error:
        if "without sending a response" in str(error):
            # It closed an idle connection when the request was on its way.
            return _ask(client, request)
        return httpx.Response(BROKEN_OFF, text=str(error), request=error.request)


def _ask(client: httpx.Client, request: Request) -> httpx.Response:
    if not request.is_task:
        return _send(client, request, request.path)
    submitted = _send(client, request, f"{request.path}/submit")
    if submitted.is_error or request.verb == "submit":
        return submitted
    task = {"task_id": submitted.json()["task_id"]}
    deadline = time.monotonic() + 30
    while client.get(f"{request.path}/status", params=task).json()["status"] in UNFINISHED:
        assert time.monotonic() < deadline, "the task did not end"
        time.sleep(0.02)
    method = {"retry": "POST", "cancel": "PUT"}.get(request.verb, "GET")
    return client.request(method, f"{request.path}/{request.verb}", params=task)


def _send(client: httpx.Client, request: Request, path: str) -> httpx.Response:
    body: dict[str, Any] = {}
    if request.content is not None:
        body["content"] = iter([request.content]) if request.is_chunked else request.content
    if request.data is not None:
        body["data"] = request.data
    if request.files:
        body["files"] = list(request.files)
    return client.request(request.method, path, headers=request.headers, **body)


def differences(ours: httpx.Response, theirs: httpx.Response) -> dict[str, tuple[Any, Any]]:
    """What differs, by its name: ours, and theirs."""
    found: dict[str, tuple[Any, Any]] = {}

    def compare(name: str, our: Any, their: Any) -> None:
        if our != their:
            found[name] = (our, their)

    compare("status", ours.status_code, theirs.status_code)
    if _is_refusal(ours) or _is_refusal(theirs) or "status" in found:
        if ours.is_error and theirs.is_error:
            compare("error", ours.content, theirs.content)
            our, their = _fields(ours), _their_fields(theirs)
            if not names_some(our, their):
                found["fields"] = (our, their)
            said = _said(theirs)
            if said is not None and said not in ours.text:
                compare("message", ours.text, said)
        return found
    compare("body", ours.content, theirs.content)
    names = ({*ours.headers} | {*theirs.headers}) - OWN_HEADERS
    for name in sorted(names):
        compare(name, _values(ours, name), _values(theirs, name))
    return found


def _values(answer: httpx.Response, name: str) -> list[str]:
    """The values of a header; a cookie without the moment of its end, which is of this second."""
    return [re.sub(r"(?i)expires=[^;]*; *", "", each) for each in answer.headers.get_list(name)]


def names_some(our: list[str], their: list[str]) -> bool:
    """True where each field of ours is one of theirs.

    The node stops at those that it finds itself; the worker names all. BentoML names the branch
    of a union between the fields.
    """
    if their == []:
        return True
    if "" in their:
        return our in ([], [""])
    return our != [] and all(any(_is_within(each, one) for one in their) for each in our)


def _is_within(our: str, their: str) -> bool:
    parts = iter(their.split("."))
    return all(each in parts for each in our.split("."))


def _is_refusal(answer: httpx.Response) -> bool:
    """True for an error of the server, or of an exception; the function may answer 404 as well."""
    is_described = (_member(answer, "code") or _member(answer, "error")) is not None
    return answer.is_error and (is_described or answer.request.method == "HEAD")


def _said(theirs: httpx.Response) -> str | None:
    """The message of an exception. BentoML 1.4 puts it into a list by mistake."""
    body = _json(theirs)
    if isinstance(body, list) and len(body) == 1:
        return str(body[0]["error"])
    return None


def _fields(ours: httpx.Response) -> list[str]:
    """The fields that are wrong."""
    return sorted(
        violation.get("field", "")
        for detail in _member(ours, "details") or []
        for violation in detail.get("debug", {}).get("fieldViolations", [])
    )


def _their_fields(theirs: httpx.Response) -> list[str]:
    return sorted(
        ".".join(str(part) for part in each["loc"]) for each in _member(theirs, "detail") or []
    )


def _member(answer: httpx.Response, name: str) -> Any:
    body = _json(answer)
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0]
    return body.get(name) if isinstance(body, dict) else None


def _json(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        return None
