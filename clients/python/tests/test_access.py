"""The access of a task: a URL for readers that can send no token."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from conftest import MakeClient
from servers import TOKEN, Server
from tessera import TaskNotFound


def test_is_a_url_that_opens_one_task_without_a_token(make: MakeClient, server: Server) -> None:
    client = make(f"{server.url}/", token=TOKEN)
    task = client.climb.submit(steps=1)
    assert task.wait() is not None
    for of, text in [("events", "event: end"), ("status", '"status":"success"')]:
        url: str = task.access_url(of)
        assert url.startswith(f"{server.url}/climb/{of}?task_id={task.id}&access=tsra_")
        answer = httpx.get(url)
        assert answer.status_code == 200
        assert text in answer.text
    other = client.climb.submit(steps=1)
    assert httpx.get(url.replace(task.id, other.id)).status_code == 403


def test_of_a_task_that_is_unknown_is_not_made(client: Any) -> None:
    with pytest.raises(TaskNotFound):
        client.task("climb", "019aa51c-0000-7000-8000-000000000000").access_url("events")
