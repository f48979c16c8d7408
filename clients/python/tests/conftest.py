from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from blocking import Blocking
from servers import TOKEN, Server
from tessera import AsyncHTTPClient, SyncHTTPClient

MakeClient = Callable[..., Any]

SHARED = {"verify": ssl.create_default_context()}
"""Reading the certificates of all authorities takes longer than most tests."""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Asks for the token."""
    with Server("--token", TOKEN) as started:
        yield started


@pytest.fixture(params=["sync", "async"])
def make(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """Makes clients of one kind, which the test uses alike; closes them in the end."""
    if request.param == "sync":
        made: list[Any] = []

        def make_sync(url: str | None = None, **options: Any) -> Any:
            made.append(SyncHTTPClient(url, **SHARED | options))
            return made[-1]

        yield make_sync
        for client in made:
            client.close()
        return
    with start_blocking_portal() as portal:
        made = []

        def make_async(url: str | None = None, **options: Any) -> Any:
            made.append(Blocking(AsyncHTTPClient(url, **SHARED | options), portal))
            return made[-1]

        yield make_async
        for client in made:
            client.close()


@pytest.fixture
def client(make: MakeClient, server: Server) -> Any:
    return make(server.url, token=TOKEN)
