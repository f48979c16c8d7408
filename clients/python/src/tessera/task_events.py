"""The log of a task: its states, its progress, and the lines that its function writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, TypeAlias

from .status import moment


@dataclass(frozen=True)
class _Entry:
    sequence: int
    """Its place in the log, from 1."""
    time: datetime
    attempt: int
    """The attempt that it belongs to; 0 before the first."""


@dataclass(frozen=True)
class StateEvent(_Entry):
    """The task changed its state."""

    status: str
    """`queued`, `running`, `success`, `failure` or `cancelled`."""
    failure: str | None = None
    """Why the task failed or, with `queued`, why the attempt before ended."""
    reason: str | None = None
    """The kind of that failure, such as `error`, `timeout` or `out_of_memory`."""
    retry_at: datetime | None = None
    """With `queued`: the earliest start of the next attempt, unless that is at once."""
    type: Literal["state"] = "state"


@dataclass(frozen=True)
class ProgressEvent(_Entry):
    """The function reported progress."""

    fraction: float
    """From 0 to 1."""
    message: str
    type: Literal["progress"] = "progress"


@dataclass(frozen=True)
class LogEvent(_Entry):
    """The function, or the platform, wrote a line."""

    level: str
    message: str
    fields: Mapping[str, Any]
    line: int = 0
    """Its number among the lines of its attempt, from 1; 0 for lines of the platform. Where
    numbers are missing, lines of a long log were left out."""
    type: Literal["log"] = "log"


TaskEvent: TypeAlias = StateEvent | ProgressEvent | LogEvent


def parse_event(said: Mapping[str, Any]) -> TaskEvent | None:
    """Parses an entry; None for one of a kind that this client does not know."""
    sequence = int(said["sequence"])
    time = moment(said.get("time")) or datetime.fromtimestamp(0, timezone.utc)
    attempt = int(said.get("attempt") or 0)
    if state := said.get("state"):
        failure = state.get("failure") or {}
        return StateEvent(
            sequence,
            time,
            attempt,
            status=str(state["status"]),
            failure=failure.get("message"),
            reason=failure.get("reason"),
            retry_at=moment(state.get("retry_at")),
        )
    if progress := said.get("progress"):
        fraction, message = float(progress["fraction"]), str(progress["message"])
        return ProgressEvent(sequence, time, attempt, fraction, message)
    if log := said.get("log"):
        return LogEvent(
            sequence,
            time,
            attempt,
            level=str(log["level"]),
            message=str(log["message"]),
            fields=log.get("fields") or {},
            line=int(log.get("line") or 0),
        )
    return None
