"""Reads Server-Sent Events, and the pieces of a streamed result in them, without I/O.

Events tell a stream that is over from one that broke. See
https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from .errors import ConnectionBroken, NotATesseraServer, TesseraError
from .refusal import not_tessera, refusal
from .wire import Answer, Request

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""Of an event, far above any of Tessera's."""

_STATUS = {"unavailable": 503, "resource_exhausted": 429}


@dataclass(frozen=True)
class Event:
    name: str
    id: str | None
    data: str


class Events:
    """The events of one open answer, whose response the caller reads and closes."""

    def __init__(self, answer: Answer, request: Request) -> None:
        """Raises `NotATesseraServer` for an answer that is no stream of events."""
        kind = answer.headers.get("content-type", "")
        if answer.opened is None or not kind.startswith("text/event-stream"):
            raise not_tessera(answer, request)
        self.response = answer.opened
        self._answer = answer
        self._request = request
        self._rest = b""
        self.ended = False
        """Whether the event that ends the stream has come."""

    def events(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events that this chunk completes; raises the error that ends the stream."""
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise NotATesseraServer(f"{self._request.what}: an event has no end")
        for block in blocks:
            event = _parse(block.decode())
            if event.name == "end":
                self.ended = True
            elif event.name == "error":
                raise self._refusal(event.data)
            elif event.data:
                yield event

    def broken(self, cause: httpx.RequestError | None = None) -> TesseraError:
        """The error for a stream that ended without its last event."""
        detail = "it ended too early" if cause is None else str(cause) or type(cause).__name__
        what = self._request.what
        return ConnectionBroken(
            f"{what}: the connection broke in the middle of the stream ({detail}): "
            "the pieces so far are not the whole",
            sent=True,
        )

    def _refusal(self, text: str) -> TesseraError:
        status = _STATUS.get(json.loads(text).get("code", ""), 500)
        return refusal(Answer(status, self._answer.headers, text.encode()), self._request)


class Pieces(Events):
    """The pieces of a streamed result."""

    def __init__(self, answer: Answer, request: Request) -> None:
        """Raises `NotATesseraServer` for an answer that is no stream of pieces."""
        super().__init__(answer, request)
        form = answer.headers.get("tessera-pieces")
        if form is None:
            raise not_tessera(answer, request)
        self._is_bytes = form == "bytes"

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """Yields the pieces that this chunk completes; raises the error that ends the stream."""
        return map(self.piece, self.events(chunk))

    def piece(self, event: Event) -> Any:
        value = json.loads(event.data)
        return base64.b64decode(value) if self._is_bytes else value


def _parse(block: str) -> Event:
    name, id_, data = "message", None, []
    for line in block.split("\n"):
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            id_ = value
        elif field == "data":
            data.append(value)
    return Event(name, id_, "\n".join(data))
