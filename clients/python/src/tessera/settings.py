"""Converts submit options from Python values to query parameters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from .calls import Options
from .tasks import Replay

Seconds = float | timedelta


def options(
    *,
    idempotency_key: str | None = None,
    replay: Replay | None = None,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: Seconds | None = None,
    start_by: datetime | None = None,
    start_within: Seconds | None = None,
    retention: Seconds | None = None,
    key: str | None = None,
    tags: Sequence[str] = (),
) -> Options:
    query: dict[str, str] = {}
    if priority is not None:
        query["priority"] = str(priority)
    for name, time in {"run_at": run_at, "start_by": start_by}.items():
        if time is not None:
            query[name] = _zoned(name, time)
    for name, span in {
        "delay": delay,
        "start_within": start_within,
        "retention": retention,
    }.items():
        if span is not None:
            query[name] = f"{_seconds(span):.3f}"
    if key is not None:
        query["key"] = key
    if tags:
        for tag in tags:
            if "," in tag:
                raise ValueError(f"tags: {tag!r} has a comma, which no tag can have")
        query["tags"] = ",".join(tags)
    return Options(idempotency_key, replay, query)


class Kept:
    """What is left out of an update stays."""


KEPT = Kept()


def task_change(
    priority: int | None,
    run_at: datetime | Kept | None,
    start_by: datetime | Kept | None,
    retention: Seconds | None,
    tags: Sequence[str] | None,
) -> dict[str, Any]:
    change: dict[str, Any] = {}
    if priority is not None:
        change["priority"] = priority
    for name, field, time in (("run_at", "runAt", run_at), ("start_by", "startBy", start_by)):
        if not isinstance(time, Kept):
            change[field] = None if time is None else _zoned(name, time)
    if retention is not None:
        change["retention"] = f"{_seconds(retention):.3f}s"
    if tags is not None:
        change["tags"] = list(tags)
    return change


def _zoned(name: str, time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError(f"{name} must say its time zone, such as datetime.now(timezone.utc)")
    return time.isoformat()


def _seconds(span: Seconds) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else span
