"""Writes the head of an answer together with what follows in the same turn of the event loop.

Uvicorn writes head and body one after the other, which is two system calls here and two reads in
the node. So a write waits for the next one, and for no longer than this turn: who sends a head and
computes before the body has sent the head.
"""

from __future__ import annotations

import asyncio
from typing import Any

# Bytes of a write that are joined with others: more would be copied for nothing.
_MAX_JOINED_BYTES = 64 * 1024


def joining(protocol: Any) -> Any:
    """The class of uvicorn for HTTP, whose connections write so."""

    class Joining(protocol):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(_JoiningTransport(transport))

    return Joining


class _JoiningTransport:
    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._later = asyncio.get_running_loop().call_soon
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data:
            return
        # What is no `bytes` may have changed by the end of the turn.
        if type(data) is not bytes or len(data) > _MAX_JOINED_BYTES:
            self._flush()
            self._transport.write(data)
        elif held := self._held:
            self._held = b""
            self._transport.write(held + data)
        else:
            self._held = data
            self._later(self._flush)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """For WebSockets, whose frames go at once."""
        self._flush()
        self.write = self._transport.write  # type: ignore[method-assign]
        self._transport.set_protocol(protocol)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if held := self._held:
            self._held = b""
            self._transport.write(held)
