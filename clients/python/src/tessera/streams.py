"""Streams about tasks, their log and the pieces of their results, as generators of steps (see
`wire`).

They come as Server-Sent Events, which resume behind the last event (`Last-Event-ID`), so none is
lost or repeated when the connection breaks. Each event resets the count of repetitions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TypeVar

import httpx

from . import errors
from .pieces import Event, Events, Pieces
from .repeat import FIRST_PAUSE_S, LONGEST_PAUSE_S, exchange, may_repeat
from .session import Session, path
from .task_events import parse_event
from .tasks import TaskRef, perhaps_expired
from .wire import Answer, Give, Pause, Read, Request, Restart, Steps

SILENCE_S = 45.0
"""Three intervals of the server's heartbeat: a stream that is silent for longer is broken."""

E = TypeVar("E", bound=Events)


class _Reading:
    """How far a stream was read."""

    tries = 0
    """How often it broke since its last event."""

    def __init__(self, last: str | None = None) -> None:
        self.last = last
        """The id of the last event."""


def stream(session: Session, task: TaskRef, *, tells_restarts: bool) -> Steps[None]:
    """Gives the pieces of the task's result until it has ended; raises the end of a failed one."""

    def give(pieces: Pieces, event: Event) -> Give | Restart:
        if event.name == "restart":
            return _restart(event, tells_restarts)
        return Give(pieces.piece(event))

    yield from _follow(session, task, "stream", _Reading(), Pieces, give)


def watch(session: Session, task: TaskRef, *, after: int) -> Steps[None]:
    """Gives the entries of the task's log after that one, until the task has ended."""

    def give(events: Events, event: Event) -> Give | None:
        entry = parse_event(json.loads(event.data))
        return None if entry is None else Give(entry)

    reading = _Reading(str(after) if after else None)
    yield from _follow(session, task, "events", reading, Events, give)


def _follow(
    session: Session,
    task: TaskRef,
    about: str,
    reading: _Reading,
    opened: Callable[[Answer, Request], E],
    give: Callable[[E, Event], Give | Restart | None],
) -> Steps[None]:
    """Performs what `give` makes of each event, over as many connections as it takes."""
    policy = session.policy
    while True:
        request = _question(session, task, about, reading.last)
        try:
            events = opened((yield from exchange(request, policy)), request)
        except errors.TaskNotFound as err:
            raise perhaps_expired(task, err) from None
        try:
            yield from _read(events, reading, give)
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


def _question(session: Session, task: TaskRef, about: str, last: str | None) -> Request:
    resumed = {} if last is None else {"last-event-id": last}
    return Request(
        "GET",
        path(session, task.endpoint, about),
        query={"task_id": task.id},
        headers={"accept": "text/event-stream", **resumed},
        wait_s=SILENCE_S,
        streams=True,
        harmless=True,
        what=f"{'watch' if about == 'events' else about} task {task.id}",
    )


def _read(
    events: E, reading: _Reading, give: Callable[[E, Event], Give | Restart | None]
) -> Steps[None]:
    """Reads one connection, to the end of the stream."""
    while not events.ended:
        try:
            chunk: bytes = yield Read()
        except httpx.RequestError as err:
            raise events.broken(err) from err
        for event in events.events(chunk):
            reading.tries = 0
            reading.last = event.id or reading.last
            step = give(events, event)
            if step is not None:
                yield step
        if not chunk and not events.ended:
            raise events.broken()


def _restart(event: Event, tells: bool) -> Restart:
    attempt = int(json.loads(event.data)["attempt"])
    if tells:
        return Restart(attempt)
    raise errors.TaskRestarted(
        f"the task began anew with attempt {attempt}, and the pieces before are void: "
        "stream it again, or give on_restart"
    )
