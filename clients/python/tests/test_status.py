"""The status of a task, as a server tells it."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from tessera import Attempt, TaskStatus
from tessera.settings import KEPT, options, task_change

AT = datetime(2026, 1, 31, 12, 0, tzinfo=timezone.utc)
TEXT = "2026-01-31T12:00:00Z"


def test_a_status_has_the_attempts_and_why_they_failed() -> None:
    failure = {"reason": "error", "code": "internal", "message": "flaky"}
    common = {"worker": "host/w", "node": "host", "started_at": TEXT}
    first = {**common, "number": 1, "ended_at": TEXT, "failure": failure, "retry_at": TEXT}
    first = {**first, "peak_memory_bytes": 1_048_576}
    second = {**common, "number": 2, "ended_at": None, "failure": None, "retry_at": None}
    answer = {"task_id": "a", "status": "running", "attempt": 2, "attempts": [first, second]}
    assert TaskStatus.parse(answer).attempts == (
        Attempt(1, "host/w", "host", AT, AT, "flaky", "error", AT, 1_048_576),
        Attempt(2, "host/w", "host", AT),
    )


def test_a_status_of_a_server_that_tells_no_attempts_has_none() -> None:
    assert TaskStatus.parse({"task_id": "a", "status": "queued"}).attempts == ()


def test_tags_are_sent_with_commas_between_and_read_back() -> None:
    assert options(tags=["customer:42", "night run"]).query == {"tags": "customer:42,night run"}
    assert "tags" not in options(tags=[]).query
    with pytest.raises(ValueError, match="has a comma"):
        options(tags=["a,b"])
    assert task_change(None, KEPT, KEPT, None, ()) == {"tags": []}
    answer = {"task_id": "a", "status": "queued", "tags": ["customer:42", "night run"]}
    assert TaskStatus.parse(answer).tags == ("customer:42", "night run")
    assert TaskStatus.parse({"task_id": "a", "status": "queued"}).tags == ()
