"""Calls of the platform's API by Connect's protocol in JSON (https://connectrpc.com/docs/protocol).

Generators of steps (see `wire`), and what the generated services in `gen` are made of. Messages
are dataclasses; they are read by their type hints and written as they are, because protobuf's JSON
takes the names of fields as the proto files have them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import httpx

from .async_driver import AsyncDriver
from .content import JsonBody
from .errors import ConnectionBroken, NotATesseraServer
from .refusal import not_tessera, refusal
from .repeat import Policy, exchange
from .rpc_json import FieldMask, FieldViolation, HttpBody, decode, encode
from .session import read_json
from .sync_driver import SyncDriver
from .wire import Answer, Give, Read, Request, Steps

T = TypeVar("T")

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of a message in a stream, far above any of the platform's."""

SILENCE_S = 45.0
"""Streams of the platform send something every 20 s at most."""

_VERSION = {"connect-protocol-version": "1"}

_END = 0x02
"""The flag of a stream's last envelope."""

_STATUS = {
    "invalid_argument": 400,
    "failed_precondition": 400,
    "out_of_range": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "already_exists": 409,
    "aborted": 409,
    "resource_exhausted": 429,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


@dataclass(frozen=True)
class Call:
    """One call of a method."""

    method: str
    """Its full name, such as `tessera.v1.TokenService/GetToken`."""
    message: Mapping[str, Any]
    """The fields of the request; those that are None are not sent."""
    harmless: bool
    """Whether it may be repeated."""


@dataclass(frozen=True)
class Empty:
    """The answer of a method that only does something."""


def unary(call: Call, policy: Policy) -> Steps[Any]:
    """Sends a call, and returns the answer's JSON; raises a `TesseraError`."""
    request = Request(
        "POST",
        f"/{call.method}",
        headers=_VERSION,
        body=JsonBody(encode(call.message)),
        wait_s=_wait_s(call),
        harmless=call.harmless,
        what=call.method.rpartition("/")[2],
    )
    answer = yield from exchange(request, policy)
    said = read_json(answer, request)
    if not isinstance(said, dict):
        raise not_tessera(answer, request)
    return said


def stream(call: Call, kind: type[T], policy: Policy) -> Steps[None]:
    """Gives the messages of a call that streams, until its end; raises the error in it."""
    request = Request(
        "POST",
        f"/{call.method}",
        headers=_VERSION,
        body=_Envelope(encode(call.message)),
        wait_s=SILENCE_S,
        streams=True,
        harmless=call.harmless,
        what=call.method.rpartition("/")[2],
    )
    answer = yield from exchange(request, policy)
    rest = b""
    while True:
        try:
            chunk: bytes = yield Read()
        except httpx.RequestError as err:
            raise _broken(request, str(err) or type(err).__name__) from err
        if not chunk:
            raise _broken(request, "it ended too early")
        rest += chunk
        while len(rest) >= 5:
            flags, length = rest[0], int.from_bytes(rest[1:5], "big")
            if length > MAX_MESSAGE_BYTES:
                raise NotATesseraServer(f"{request.what}: a message has no end")
            if len(rest) < 5 + length:
                break
            said, rest = json.loads(rest[5 : 5 + length]), rest[5 + length :]
            if flags & _END:
                _raise_error(said, answer, request)
                return
            yield Give(decode(kind, said))


def _raise_error(said: Mapping[str, Any], answer: Answer, request: Request) -> None:
    error = said.get("error")
    if error is not None:
        status = _STATUS.get(str(error.get("code")), 500)
        content = json.dumps(error).encode()
        raise refusal(Answer(status, answer.headers, content), request)


def _broken(request: Request, detail: str) -> ConnectionBroken:
    return ConnectionBroken(
        f"{request.what}: the connection broke in the middle of the stream ({detail}): call again",
        sent=True,
    )


def _wait_s(call: Call) -> float:
    """How long the call asks the server to hold its answer back."""
    wait = call.message.get("wait")
    return wait.total_seconds() if isinstance(wait, timedelta) else 0.0


class _Envelope:
    """The only message of a request to a method that streams its answer."""

    content_type = "application/connect+json"
    repeatable = True

    def __init__(self, message: Mapping[str, Any]) -> None:
        data = b"".join(JsonBody(message).chunks())
        self._data = b"\0" + len(data).to_bytes(4, "big") + data
        self.length = len(self._data)

    def chunks(self) -> Iterator[bytes]:
        yield self._data


class SyncService:
    """Calls the methods of one service."""

    def __init__(self, driver: SyncDriver) -> None:
        self._driver = driver

    def _unary(self, call: Call, kind: type[T]) -> T:
        return decode(kind, self._driver.run(unary(call, self._driver.policy)))

    def _stream(self, call: Call, kind: type[T]) -> Iterator[T]:
        return self._driver.stream(stream(call, kind, self._driver.policy), None)

    def _pages(self, call: Call, kind: type[T], items: str) -> Iterator[T]:
        """The items of all pages; each page is asked for when the one before is used up."""
        page: str | None = None
        while page != "":
            asked = Call(call.method, {**call.message, "page_token": page}, call.harmless)
            said = self._driver.run(unary(asked, self._driver.policy))
            for item in said.get(items) or []:
                yield decode(kind, item)
            page = said.get("nextPageToken") or ""


class AsyncService:
    """Calls the methods of one service."""

    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver

    async def _unary(self, call: Call, kind: type[T]) -> T:
        return decode(kind, await self._driver.run(unary(call, self._driver.policy)))

    def _stream(self, call: Call, kind: type[T]) -> AsyncIterator[T]:
        return self._driver.stream(stream(call, kind, self._driver.policy), None)

    async def _pages(self, call: Call, kind: type[T], items: str) -> AsyncIterator[T]:
        """The items of all pages; each page is asked for when the one before is used up."""
        page: str | None = None
        while page != "":
            asked = Call(call.method, {**call.message, "page_token": page}, call.harmless)
            said = await self._driver.run(unary(asked, self._driver.policy))
            for item in said.get(items) or []:
                yield decode(kind, item)
            page = said.get("nextPageToken") or ""


__all__ = [
    "AsyncService",
    "Call",
    "Empty",
    "FieldMask",
    "FieldViolation",
    "HttpBody",
    "SyncService",
]
