"""Converts submit options from Python values to query parameters."""

from __future__ import annotations

from datetime import datetime, timedelta

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
) -> Options:
    query: dict[str, str] = {}
    if priority is not None:
        query["priority"] = str(priority)
    for name, time in {"run_at": run_at, "start_by": start_by}.items():
        if time is not None:
            if time.tzinfo is None:
                raise ValueError(
                    f"{name} must say its time zone, such as datetime.now(timezone.utc)"
                )
            query[name] = time.isoformat()
    for name, span in {
        "delay": delay,
        "start_within": start_within,
        "retention": retention,
    }.items():
        if span is not None:
            seconds = span.total_seconds() if isinstance(span, timedelta) else span
            query[name] = f"{seconds:.3f}"
    return Options(idempotency_key, replay, query)
