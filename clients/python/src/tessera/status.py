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
    failure: str | None = None
    """Why it failed, in the function's words."""
    queue_position: int | None = None
    estimated_start: datetime | None = None

    @property
    def is_final(self) -> bool:
        return self.value in FINAL

    @staticmethod
    def parse(answer: Mapping[str, Any]) -> TaskStatus:
        progress = answer.get("progress")
        failure = answer.get("failure")
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
            failure=failure["message"] if failure else None,
            queue_position=answer.get("queue_position"),
            estimated_start=moment(answer.get("estimated_start")),
        )


def moment(text: str | None) -> datetime | None:
    """Parses an RFC 3339 time; Python before 3.11 does not accept the `Z`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
