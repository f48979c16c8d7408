"""Streamed results of tasks, as generators of steps (see `wire`).

The pieces come as Server-Sent Events, which resume behind the last piece (`Last-Event-ID`), so
none is lost or repeated when the connection breaks. Each piece resets the count of repetitions.
"""

from __future__ import annotations

import json
import random

import httpx

from . import errors
from .pieces import Event, Pieces
from .repeat import FIRST_PAUSE_S, LONGEST_PAUSE_S, exchange, may_repeat
from .session import Session, path
from .tasks import TaskRef, perhaps_expired
from .wire import Give, Pause, Read, Request, Restart, Steps

SILENCE_S = 45.0
"""Three intervals of the server's heartbeat: a stream that is silent for longer is broken."""


class _Reading:
    """How far a stream was read."""

    last: str | None = None
    """The id of the last event."""
    tries = 0
    """How often it broke since."""


def stream(session: Session, task: TaskRef, *, tells_restarts: bool) -> Steps[None]:
    """Gives the pieces of the task's result until it has ended; raises the end of a failed one."""
    policy = session.policy
    reading = _Reading()
    while True:
        request = _question(task, reading.last)
        try:
            pieces = Pieces((yield from exchange(request, policy)), request)
        except errors.TaskNotFound as err:
            raise perhaps_expired(task, err) from None
        try:
            yield from _read(pieces, reading, tells_restarts)
            return
        except errors.TaskRestarted:
            raise
        except errors.TesseraError as err:
            problem = err
        reading.tries += 1
        goes_on = isinstance(problem, errors.ConnectionBroken) or may_repeat(problem, request)
        if reading.tries > policy.retries or not goes_on:
            raise problem
        range_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (reading.tries - 1))
        yield Pause((problem.retry_after_s or 0.0) + random.uniform(0, range_s))


def _question(task: TaskRef, last: str | None) -> Request:
    resumed = {} if last is None else {"last-event-id": last}
    return Request(
        "GET",
        path(task.endpoint, "stream"),
        query={"task_id": task.id},
        headers={"accept": "text/event-stream", **resumed},
        wait_s=SILENCE_S,
        streams=True,
        harmless=True,
        what=f"stream task {task.id}",
    )


def _read(pieces: Pieces, reading: _Reading, tells_restarts: bool) -> Steps[None]:
    """Reads one connection, to the end of the stream."""
    while not pieces.ended:
        try:
            chunk: bytes = yield Read()
        except httpx.RequestError as err:
            raise pieces.broken(err) from err
        for event in pieces.events(chunk):
            reading.tries = 0
            reading.last = event.id or reading.last
            if event.name == "restart":
                yield _restart(event, tells_restarts)
            else:
                yield Give(pieces.piece(event))
        if not chunk and not pieces.ended:
            raise pieces.broken()


def _restart(event: Event, tells: bool) -> Restart:
    attempt = int(json.loads(event.data)["attempt"])
    if tells:
        return Restart(attempt)
    raise errors.TaskRestarted(
        f"the task began anew with attempt {attempt}, and the pieces before are void: "
        "stream it again, or give on_restart"
    )
