"""Answers of mounted servers: what is written in one turn of the event loop goes together."""

from __future__ import annotations

import asyncio
from typing import Any

from tessera.host.joining import joining


class Transport:
    def __init__(self) -> None:
        self.did: list[Any] = []

    def write(self, data: bytes) -> None:
        self.did.append(data)

    def write_eof(self) -> None:
        self.did.append("eof")

    def close(self) -> None:
        self.did.append("close")

    def set_protocol(self, _protocol: object) -> None:
        self.did.append("protocol")

    def is_closing(self) -> bool:
        return "close" in self.did


class Protocol:
    transport: Any

    def connection_made(self, transport: Any) -> None:
        self.transport = transport


def connected() -> tuple[Any, list[Any]]:
    transport = Transport()
    protocol = joining(Protocol)()
    protocol.connection_made(transport)
    return protocol.transport, transport.did


def test_head_and_body_are_one_write() -> None:
    async def answer() -> list[Any]:
        transport, did = connected()
        transport.write(b"head ")
        transport.write(b"")
        assert did == []
        transport.write(b"body")
        assert did == [b"head body"]
        await asyncio.sleep(0)
        return did

    assert asyncio.run(answer()) == [b"head body"]


def test_a_head_waits_for_no_later_body() -> None:
    async def answer() -> None:
        transport, did = connected()
        transport.write(b"head")
        await asyncio.sleep(0)
        assert did == [b"head"]
        transport.write(b"body")
        await asyncio.sleep(0)
        assert did == [b"head", b"body"]

    asyncio.run(answer())


def test_what_may_change_and_what_is_large_is_written_at_once_behind_what_waits() -> None:
    async def answer() -> None:
        transport, did = connected()
        buffer = bytearray(b"one")
        transport.write(memoryview(buffer))
        buffer[:] = b"two"
        transport.write(b"head")
        transport.write(buffer)
        assert did == [b"two", b"head", b"two"] and did[0].obj is buffer and did[2] is buffer
        large = b"x" * (64 * 1024 + 1)
        transport.write(b"head")
        transport.write(large)
        assert did[3:] == [b"head", large] and did[4] is large
        await asyncio.sleep(0)
        assert len(did) == 5

    asyncio.run(answer())


def test_what_waits_is_written_before_the_end_and_before_a_websocket() -> None:
    async def answer() -> None:
        for end, said in (("close", "close"), ("write_eof", "eof")):
            transport, did = connected()
            transport.write(b"head")
            getattr(transport, end)()
            assert did == [b"head", said]
        transport, did = connected()
        transport.write(b"head")
        transport.set_protocol(object())
        transport.write(b"frame")
        transport.write(b"frame")
        assert did == [b"head", "protocol", b"frame", b"frame"]

    asyncio.run(answer())
