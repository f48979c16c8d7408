"""``socket``: what a service may have, and what it is refused for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tessera import SocketContext, api, service, socket
from tessera.sdk.executable import ServiceError
from tessera.sdk.hosted import HostedClass
from tessera.sdk.services import definition_of
from tessera.sdk.sockets import Socket


def test_it_is_a_mounted_server_at_the_name_of_its_method_or_at_its_route() -> None:
    @service
    class Talks:
        @socket
        async def live(self, ctx: SocketContext) -> None: ...

        @socket(route="/v1/live", concurrency=1_000, rate_per_key="10/s", max_message="4MiB")
        async def other(self, ctx: SocketContext) -> None: ...

    definition = definition_of(Talks)
    assert definition is not None
    hosted = HostedClass(definition)
    assert hosted.manifest["mounts"] == [
        {"path": "/live", "timeoutMs": 60_000, "concurrency": 100, "openapi": ""},
        {
            **{"path": "/v1/live", "timeoutMs": 60_000, "concurrency": 1_000, "openapi": ""},
            "byKey": {"rate": {"count": 10, "periodMs": 1_000}},
        },
    ]
    assert [each.max_message for each in hosted.mounts] == [1024**2, 4 * 1024**2]


def test_it_is_refused_where_it_could_not_be_reached_or_not_run() -> None:
    async def live(self: Any, ctx: Any) -> None: ...

    async def lonely(self: Any) -> None: ...

    def blocking(self: Any, ctx: Any) -> None: ...

    def metrics() -> Any:
        return type("Metrics", (), {"live": socket(route="/metrics")(live)})

    def twice() -> Any:
        called = api(name="live")(blocking)
        return type("Twice", (), {"live": socket(live), "called": called})

    wrong: Any = socket
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: wrong(lonely), "async def lonely"),
        (lambda: wrong(blocking), "async def blocking"),
        (lambda: wrong(max_message="17MiB")(live), "from 1KiB to 16MiB"),
        (lambda: wrong(max_size=1)(live), "no option max_size"),
        (lambda: service(metrics()), "for the server"),
        (lambda: service(twice()), "the endpoint of this name"),
    ]
    for make, said in cases:
        with pytest.raises(ServiceError, match=said):
            make()


def test_it_sends_texts_and_bytes_until_it_has_ended() -> None:
    async def talk() -> None:
        events = iter(
            [{"type": "websocket.receive", "bytes": b"a"}, {"type": "websocket.disconnect"}]
        )
        sent: list[Any] = []

        async def receive() -> Any:
            return next(events)

        async def send(event: Any) -> None:
            sent.append(event)

        one = Socket(receive, send)
        wrong: Any = 1
        await one.send(bytearray(b"b"))
        for code, reason in [(1005, ""), (2000, ""), (True, ""), (1000, "x" * 124)]:
            with pytest.raises(ValueError):
                await one.close(code, reason)
        with pytest.raises(TypeError):
            await one.send(wrong)
        assert [message async for message in one] == [b"a"]
        with pytest.raises(ConnectionError):
            await one.send("late")
        await one.close()
        assert sent == [{"type": "websocket.send", "bytes": b"b"}]

    asyncio.run(talk())
