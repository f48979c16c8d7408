"""The status of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

FINAL = frozenset({"success", "failure", "cancelled"})


@dataclass(frozen=True)
class Progress:
    fraction: float
    """From 0 to 1."""
    message: str


@dataclass(frozen=True)
class Attempt:
    """One execution of a task."""

    number: int
    """From 1."""
    worker: str
    node: str
    """The node of that worker; may be empty."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    """None while it runs."""
    failure: str | None = None
    """Why it ended, unless it still runs, succeeded or was cancelled."""
    reason: str | None = None
    """The kind of that failure, such as `error`, `timeout` or `out_of_memory`."""
    retry_at: datetime | None = None
    """The earliest start of the next attempt, unless that was at once."""
    peak_memory_bytes: int | None = None
    """The most memory that its worker held while it ran; None where it was not measured."""

    @staticmethod
    def parse(answer: Mapping[str, Any]) -> Attempt:
        failure = answer.get("failure")
        return Attempt(
            number=int(answer["number"]),
            worker=str(answer.get("worker") or ""),
            node=str(answer.get("node") or ""),
            started_at=moment(answer.get("started_at")),
            ended_at=moment(answer.get("ended_at")),
            failure=failure["message"] if failure else None,
            reason=failure["reason"] if failure else None,
            retry_at=moment(answer.get("retry_at")),
            peak_memory_bytes=answer.get("peak_memory_bytes"),
        )


@dataclass(frozen=True)
class TaskStatus:
    """A snapshot of a task. `value` is `queued`, `running`, `success`, `failure` or `cancelled`."""

    value: str
    task_id: str
    attempt: int = 0
    progress: Progress | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    """When the task and its result are deleted; moves later when the task ends."""
    retry_of: str | None = None
    key: str | None = None
    """Whose it is among the callers that share its endpoint."""
    tags: tuple[str, ...] = ()
    """Its tags, in the order in which they were given; empty with an older server."""
    failure: str | None = None
    """Why it failed, in the function's words."""
    queue_position: int | None = None
    estimated_start: datetime | None = None
    waits_for: str | None = None
    """The worker that it waits for, when none that could run it is there or starts."""
    queued_reason: str | None = None
    """Why it is queued, while it is: a sentence for people."""
    queued_code: str | None = None
    """The same for programs, such as `workers_busy` or `worker_starting`."""
    attempts: tuple[Attempt, ...] = ()
    """The first and the last attempts, oldest first; empty with an older server."""

    @property
    def is_final(self) -> bool:
        return self.value in FINAL

    @staticmethod
    def parse(answer: Mapping[str, Any]) -> TaskStatus:
        progress = answer.get("progress")
        failure = answer.get("failure")
        queued = answer.get("queued_reason")
        return TaskStatus(
            value=str(answer["status"]),
            task_id=str(answer["task_id"]),
            attempt=int(answer.get("attempt") or 0),
            progress=Progress(progress["fraction"], progress["message"]) if progress else None,
            created_at=moment(answer.get("created_at")),
            started_at=moment(answer.get("started_at")),
            finished_at=moment(answer.get("finished_at")),
            expires_at=moment(answer.get("expires_at")),
            retry_of=answer.get("retry_of"),
            key=answer.get("key"),
            tags=tuple(answer.get("tags") or ()),
            failure=failure["message"] if failure else None,
            queue_position=answer.get("queue_position"),
            estimated_start=moment(answer.get("estimated_start")),
            waits_for=answer.get("waits_for"),
            queued_reason=queued["message"] if queued else None,
            queued_code=queued["code"] if queued else None,
            attempts=tuple(Attempt.parse(each) for each in answer.get("attempts") or ()),
        )


def moment(text: str | None) -> datetime | None:
    """Parses an RFC 3339 time; Python before 3.11 does not accept the `Z`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
