"""Ends connections so that their last bytes arrive.

A socket that is closed while bytes of its peer wait unread resets the connection, and what was sent
before is lost with it, such as the close frame that says why. So this side ends first, drops what
still comes, and closes when the peer has ended, or after a while, whatever waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

LINGER_SECONDS = 5


def lingering(protocol: Any) -> Any:
    """The class of uvicorn for WebSockets, whose connections end so."""

    class Lingering(protocol):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            self._ending = _EndingTransport(transport)
            super().connection_made(self._ending)

        def data_received(self, data: bytes) -> None:
            if not self._ending.has_ended:
                super().data_received(data)

        def keepalive_timeout(self) -> None:
            # Behind what its method has not read yet, the answer to a ping cannot be seen.
            if self._ending.is_paused:
                self.pong_timer = None
                self.schedule_ping()
            else:
                super().keepalive_timeout()

    return Lingering


class _EndingTransport:
    """A transport that is closed when its peer has ended, too."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.has_ended = False
        self.is_paused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.has_ended or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self.has_ended:
            self._transport.write(data)

    def pause_reading(self) -> None:
        if not self.has_ended:
            self.is_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.is_paused = False
        self._transport.resume_reading()

    def close(self) -> None:
        if self.is_closing():
            return
        self.has_ended = True
        with contextlib.suppress(OSError):
            self._transport.write_eof()
        self._transport.resume_reading()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)
