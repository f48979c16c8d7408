"""Connections that break: nothing runs twice, and what was accepted is there once."""

from __future__ import annotations

import os
import random
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from conftest import MakeClient
from cutting import Cut, CuttingProxy, Plan
from servers import TOKEN, Server
from tessera import (
    ConnectionBroken,
    NotReady,
    ServerNotReached,
    SyncHTTPClient,
    TimedOut,
    Upload,
)

CUTS = 200

Made = TypeVar("Made")


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    """Shorter pauses: what counts here is how often, not how long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tessera.repeat.FIRST_PAUSE_S", 0.01)
        yield


def tasks_of(server: Server, endpoint: str) -> list[str]:
    """The ids of all tasks of an endpoint, by ListTasks."""
    ids: list[str] = []
    page = ""
    headers = {"authorization": f"Bearer {TOKEN}"}
    while True:
        query = {"endpoint": endpoint, "page_size": "500", "page_token": page}
        answer = httpx.get(f"{server.url}/api/v1/tasks", params=query, headers=headers).json()
        ids += [task["task_id"] for task in answer.get("tasks", [])]
        page = answer.get("next_page_token", "")
        if not page:
            return ids


def budgets(seed: int) -> Plan:
    """Every connection is cut: within its first request or answer, or a few later."""
    draw = random.Random(seed)

    def plan(_: int) -> Cut:
        if draw.random() < 0.5:
            return Cut(after_sent=draw.randint(1, 700))
        return Cut(after_received=draw.randint(1, 700))

    return plan


def until_cut(proxy: CuttingProxy, call: Callable[[int], Made]) -> list[Made]:
    """Calls, four at a time, until so many connections were cut."""
    made: list[Made] = []
    with ThreadPoolExecutor(4) as threads:
        while proxy.cuts < CUTS and len(made) < 10 * CUTS:
            made += threads.map(call, range(len(made), len(made) + 20))
    assert proxy.cuts >= CUTS
    return made


def test_200_cuts_during_submits_leave_one_task_for_each_call(
    make: MakeClient, server: Server
) -> None:
    before = set(tasks_of(server, "greet_later"))
    with CuttingProxy(server.port, lambda _: None) as proxy:
        client = make(proxy.url, token=TOKEN, retries=30)
        client.endpoints()
        proxy.plan = budgets(seed=7)
        tasks = until_cut(proxy, lambda number: client.greet_later.submit(name=f"caller {number}"))
    new = [each for each in tasks_of(server, "greet_later") if each not in before]
    assert sorted(new) == sorted(task.id for task in tasks)
    assert server_side(server, tasks[17].id) == "Hello caller 17!"


def server_side(server: Server, task_id: str) -> str:
    with SyncHTTPClient(server.url, token=TOKEN) as client:
        return str(client.task("greet_later", task_id).wait(timeout=30))


def test_a_submit_that_never_gets_through_can_be_taken_up_later(
    make: MakeClient, server: Server
) -> None:
    before = len(tasks_of(server, "add"))
    with CuttingProxy(server.port, lambda at: Cut(after_received=1) if at else None) as proxy:
        client = make(proxy.url, token=TOKEN, retries=2)
        proxy_schema(client, proxy)
        with pytest.raises(ConnectionBroken, match="to have it done once") as caught:
            client.add.submit(numbers=[1])
    found = re.search("idempotency_key='(.+?)'", caught.value.message)
    assert found
    direct = make(server.url, token=TOKEN)
    task = direct.add.with_options(idempotency_key=found[1]).submit(numbers=[1])
    assert task.wait(timeout=30) == 1
    assert len(tasks_of(server, "add")) == before + 1


def test_an_upload_that_is_cut_in_the_middle_is_sent_again(
    make: MakeClient, server: Server
) -> None:
    document = bytes(range(256)) * 8192
    cuts = [None, Cut(after_sent=1_000_000), Cut(after_sent=1_500_000)]
    with CuttingProxy(server.port, lambda at: cuts[at] if at < len(cuts) else None) as proxy:
        client = make(proxy.url, token=TOKEN)
        with SyncHTTPClient(proxy.url, token=TOKEN) as first:
            first.endpoints()
        task = client.measure_later.submit(document=document)
        assert task.wait(timeout=30)["document"]["bytes"] == len(document)
        assert proxy.cuts == 2


def test_what_can_be_read_only_once_is_not_sent_again(make: MakeClient, server: Server) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"once")
    os.close(writing)
    with (
        CuttingProxy(server.port, lambda at: Cut(after_sent=300) if at else None) as proxy,
        open(reading, "rb") as pipe,
    ):
        client = make(proxy.url, token=TOKEN)
        proxy_schema(client, proxy)
        with pytest.raises(ConnectionBroken) as caught:
            client.measure_later.submit(document=Upload(pipe, name="a.txt"))
        assert caught.value.sent


def test_a_result_that_is_cut_is_asked_for_again(make: MakeClient, server: Server) -> None:
    with CuttingProxy(server.port, lambda at: Cut(after_received=700_000)) as proxy:
        direct = make(server.url, token=TOKEN)
        task = direct.produce.submit(bytes=1_000_000)
        client = make(proxy.url, token=TOKEN, retries=1)
        with pytest.raises(ConnectionBroken, match="nothing was changed"):
            client.task("produce", task.id).wait(timeout=30)
        proxy.plan = lambda _: None
        assert client.task("produce", task.id).wait(timeout=30).size == 1_000_000


@pytest.mark.parametrize("cut", [Cut(after_received=1), Cut(after_received=120)])
def test_an_api_call_whose_answer_is_lost_is_not_repeated(
    make: MakeClient, server: Server, cut: Cut
) -> None:
    direct = make(server.url, token=TOKEN)
    before = direct.ticks()
    with CuttingProxy(server.port, lambda _: None) as proxy:
        client = make(proxy.url, token=TOKEN)
        proxy_schema(client, proxy)
        proxy.plan = lambda _: cut
        with pytest.raises(ConnectionBroken, match="may have run") as caught:
            client.tick()
        assert caught.value.sent
    assert direct.ticks() == before + 1


def test_200_cuts_during_retries_leave_one_task_for_each_call(
    make: MakeClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A retry is longer than what gets through mostly: many tries in a row, whose pauses add up.
    monkeypatch.setattr("tessera.repeat.LONGEST_PAUSE_S", 0.1)
    first = make(server.url, token=TOKEN).climb.submit(steps=3)
    first.wait(timeout=30)
    before = set(tasks_of(server, "climb"))
    with CuttingProxy(server.port, budgets(seed=11)) as proxy:
        task = make(proxy.url, token=TOKEN, retries=30).task("climb", first.id)
        again = until_cut(proxy, lambda _: task.retry())
    new = [each for each in tasks_of(server, "climb") if each not in before]
    assert sorted(new) == sorted(each.id for each in again)


def test_a_retry_that_never_gets_through_can_be_taken_up_later(
    make: MakeClient, server: Server
) -> None:
    task = make(server.url, token=TOKEN).add.submit(numbers=[1])
    task.wait(timeout=30)
    before = len(tasks_of(server, "add"))
    with CuttingProxy(server.port, lambda _: Cut(after_received=1)) as proxy:
        client = make(proxy.url, token=TOKEN, retries=2)
        with pytest.raises(ConnectionBroken, match="to have it done once") as caught:
            client.task("add", task.id).retry()
    found = re.search(r"retry\(idempotency_key='(.+?)'", caught.value.message)
    assert found
    assert task.retry(idempotency_key=found[1]).wait(timeout=30) == 1
    assert len(tasks_of(server, "add")) == before + 1


def test_an_api_call_is_repeated_while_nothing_was_sent(make: MakeClient) -> None:
    """The port answers from the second try on."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    client = make(f"http://127.0.0.1:{port}", token=TOKEN, retries=0)
    with pytest.raises(ServerNotReached, match="check that the server runs") as caught:
        client.greet(name="Ada")
    assert not caught.value.sent
    with Server("--token", TOKEN, port=port):
        client.wait_ready(timeout=30)
        assert client.greet(name="Ada") == "Hello Ada!"


def test_a_server_that_never_gets_ready_is_told_as_such(make: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = make(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
        with pytest.raises(NotReady, match="was not ready within"):
            client.wait_ready(timeout=0.5)


def test_an_answer_that_takes_too_long_is_told_from_a_broken_connection(
    make: MakeClient, server: Server
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = make(url, token=TOKEN, timeout=0.2, retries=0)
        with pytest.raises(TimedOut, match=r"within 0\.2 s"):
            client.endpoints()


def test_waiting_for_a_task_goes_on_over_a_server_that_restarts(
    make: MakeClient, tmp_path: Path
) -> None:
    flags = ("--database", str(tmp_path / "tasks.db"))
    with Server(*flags) as first:
        port = first.port
        client = make(first.url, retries=20)
        task = client.greet_later.with_options(delay=2).submit(name="Ada")
        with ThreadPoolExecutor(1) as threads:
            result = threads.submit(task.wait, 60)
            first.stop()
            with Server(*flags, port=port):
                assert result.result(60) == "Hello Ada!"


def proxy_schema(client: Any, proxy: CuttingProxy) -> None:
    """Reads the schema by a connection that lives, and leaves none behind."""
    client.endpoints()
    proxy.drop()
