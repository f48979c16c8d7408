"""Requests to mounted servers as tasks: the name of the endpoint is the path of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from servers import ROOT, Server
from tessera import SyncHTTPClient
from tessera.errors import BadArguments, TaskFailed


@pytest.fixture(scope="module")
def client() -> Iterator[SyncHTTPClient]:
    service = ROOT / "test" / "e2e" / "hosting" / "services" / "queueing.ts"
    with Server(service=service) as server, SyncHTTPClient(server.url) as made:
        yield made


def test_a_request_is_submitted_and_its_answer_is_a_file(client: SyncHTTPClient) -> None:
    server = client.endpoint("/")
    task = server.with_options(priority=3).submit(
        method="PUT", path="/x?y=1", headers={"x-tenant": "t"}, body=b"hello"
    )
    answer = json.loads(task.wait(timeout=30).read())
    assert (answer["method"], answer["url"], answer["body"]) == ("PUT", "/x?y=1", "hello")
    assert answer["headers"]["x-tenant"] == "t"
    assert client.task("/", task.id).get_status().value == "success"
    assert json.loads(server(method="GET", path="/z").read())["url"] == "/z"


def test_what_a_server_refuses_fails_the_task_in_its_words(client: SyncHTTPClient) -> None:
    server = client.endpoint("/")
    with pytest.raises(TaskFailed, match=r"answered with 422: .*it has no name") as failed:
        server(method="GET", path="/status/422")
    assert failed.value.facts.status == 422
    with pytest.raises(TaskFailed, match="answered with 503: not now"):
        server(method="GET", path="/status/503")


def test_a_request_that_is_none_is_refused(client: SyncHTTPClient) -> None:
    with pytest.raises(BadArguments, match="method"):
        client.endpoint("/").submit(method="TRACE", path="/x")
