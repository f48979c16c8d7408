"""Operations on submitted tasks, as generators of steps (see `wire`)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote

from . import errors
from .content import JsonBody
from .refusal import not_tessera
from .repeat import exchange
from .session import Session, find, path, read_json, read_result, read_task
from .status import TaskStatus, moment
from .wire import Answer, Report, Request, Steps

LONG_POLL_S = 30.0
"""The server holds an answer back for 60 s at most; proxies often give up after that."""


@dataclass
class TaskRef:
    """A client's reference to a task."""

    endpoint: str
    id: str
    expires_at: datetime | None = None
    """As last heard; None for a task that was named by its id and never asked for."""


def get_status(session: Session, task: TaskRef, wait_s: float = 0) -> Steps[TaskStatus]:
    """Reads the status; with `wait_s`, at the task's next change or after that time."""
    request = _question(session, task, "status", wait_s)
    try:
        answer = yield from exchange(request, session.policy)
    except errors.TaskNotFound as err:
        raise perhaps_expired(task, err) from None
    status = TaskStatus.parse(read_task(answer, request))
    task.expires_at = status.expires_at
    return status


def get(session: Session, task: TaskRef, wait_s: float = 0) -> Steps[Any]:
    """Reads the result; with `wait_s`, when the task has ended or after that time."""
    endpoint = yield from find(session, task.endpoint)
    request = replace(_question(session, task, "get", wait_s), to_file=endpoint.returns_file)
    try:
        answer = yield from exchange(request, session.policy)
    except errors.TaskNotFound as err:
        raise perhaps_expired(task, err) from None
    return read_result(answer, request)


def wait(session: Session, task: TaskRef, *, timeout_s: float | None, reports: bool) -> Steps[Any]:
    """Waits for the result; yields a `Report` for every change."""
    end = None if timeout_s is None else time.monotonic() + timeout_s
    last: TaskStatus | None = None
    while True:
        left_s = LONG_POLL_S if end is None else min(LONG_POLL_S, max(0.0, end - time.monotonic()))
        if reports:
            status = yield from get_status(session, task, 0 if last is None else left_s)
            if status != last:
                yield Report(status)
            last = status
            if status.is_final:
                return (yield from get(session, task))
        else:
            try:
                return (yield from get(session, task, left_s))
            except errors.NotFinished:
                pass
        if end is not None and time.monotonic() >= end:
            text = (
                f"task {task.id} has not ended within {timeout_s:g} s: it goes on; "
                "wait() again, or cancel it"
            )
            raise errors.TimedOut(text, sent=True)


def cancel(session: Session, task: TaskRef, *, abort: bool) -> Steps[None]:
    """Cancels a task; succeeds for one that is cancelled already."""
    query = {"task_id": task.id, **({"abort": "true"} if abort else {})}
    request = Request(
        "POST",
        path(session, task.endpoint, "cancel"),
        query=query,
        harmless=True,
        what=f"cancel task {task.id}",
    )
    try:
        yield from exchange(request, session.policy)
    except errors.AlreadyFinished as err:
        if err.metadata.get("status") != "cancelled":
            raise
    except errors.TaskNotFound as err:
        raise perhaps_expired(task, err) from None


def update(session: Session, task: TaskRef, change: Mapping[str, Any]) -> Steps[None]:
    """Changes when a task starts that waits, and how long it is kept."""
    # In JSON, masks name fields in camel case, as fields may be named too.
    message = {**change, "endpoint": task.endpoint, "updateMask": ",".join(change)}
    request = Request(
        "PATCH",
        f"/api/v1/tasks/{quote(task.id, safe='')}",
        body=JsonBody(message),
        harmless=True,
        what=f"update task {task.id}",
    )
    try:
        yield from exchange(request, session.policy)
    except errors.TaskNotFound as err:
        raise perhaps_expired(task, err) from None


def delete(session: Session, task: TaskRef, *, abort: bool) -> Steps[None]:
    """Deletes a task; succeeds for one that is deleted already."""
    request = Request(
        "DELETE",
        f"/api/v1/tasks/{quote(task.id, safe='')}",
        query={"endpoint": task.endpoint, **({"abort": "true"} if abort else {})},
        harmless=True,
        what=f"delete task {task.id}",
    )
    try:
        yield from exchange(request, session.policy)
    except errors.TaskNotFound as err:
        if "deleted_at" not in err.metadata:
            raise perhaps_expired(task, err) from None


Replay = Literal["always"]
"""A key returns its first task however that ended."""


def key_query(key: str | None, replay: Replay | None) -> dict[str, str]:
    """A random key stands for one request, whose answer may be lost: it returns its task always."""
    return {"replay": "always"} if key is None or replay == "always" else {}


def retry(
    session: Session, task: TaskRef, key: str | None, replay: Replay | None
) -> Steps[TaskRef]:
    request = Request(
        "POST",
        path(session, task.endpoint, "retry"),
        query={"task_id": task.id, **key_query(key, replay)},
        headers={"idempotency-key": key or uuid.uuid4().hex},
        harmless=True,
        what=f"retry task {task.id}",
    )
    try:
        answer = yield from exchange(request, session.policy)
    except errors.TaskNotFound as err:
        raise perhaps_expired(task, err) from None
    return new_task(task.endpoint, answer, request)


Reading = Literal["events", "stream", "status", "get"]
"""What the access of a task opens."""


def access_url(session: Session, task: TaskRef, of: Reading) -> Steps[str]:
    request = Request(
        "POST",
        path(session, task.endpoint, "access"),
        query={"task_id": task.id},
        harmless=True,
        what=f"make an access of task {task.id}",
    )
    try:
        answer = yield from exchange(request, session.policy)
    except errors.TaskNotFound as err:
        raise perhaps_expired(task, err) from None
    said = read_json(answer, request)
    if not isinstance(said, dict) or "path" not in said:
        raise not_tessera(answer, request)
    url = session.policy.url.rstrip("/") + str(said["path"])
    if session.deployment is not None and "url" in said:
        # A page can name no deployment in a header.
        url = str(said["url"])
    return url.replace("/events?", f"/{of}?", 1)


def new_task(endpoint: str, answer: Answer, request: Request) -> TaskRef:
    said = read_task(answer, request)
    return TaskRef(endpoint, str(said["task_id"]), moment(said.get("expires_at")))


def _question(session: Session, task: TaskRef, about: str, wait_s: float) -> Request:
    query = {"task_id": task.id}
    if wait_s > 0:
        query["wait"] = f"{wait_s:.3f}"
    return Request(
        "GET",
        path(session, task.endpoint, about),
        query=query,
        wait_s=wait_s,
        harmless=True,
        what=f"{about} of task {task.id}",
    )


def perhaps_expired(task: TaskRef, err: errors.TaskNotFound) -> errors.TaskNotFound:
    """Tells an expired task from one that never existed, and from one that was deleted."""
    if "deleted_at" in err.metadata:
        return err
    if task.expires_at is None:
        return errors.TaskNotFound(f"{err.message}; check the id and the endpoint", err.facts)
    when = task.expires_at.isoformat()
    answered_at = err.facts.answered_at
    # The server sends its time in whole seconds.
    if answered_at is not None and answered_at + timedelta(seconds=1) > task.expires_at:
        text = (
            f"task {task.id} was kept until {when} and is deleted: submit it again, and fetch the "
            "result in time, or give the endpoint a longer retention"
        )
        return errors.ResultExpired(text, err.facts)
    text = (
        f"{err.message}, but was to be kept until {when}: the server has lost its memory "
        "(tessera serve without --database keeps tasks only while it runs), or another one answers"
    )
    return errors.TaskNotFound(text, err.facts)
