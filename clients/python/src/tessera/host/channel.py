"""The channel to the node: a socket that the process inherits, frames in both directions."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from .frames import Attachments, Frame, FrameReader, encode_frame

CHANNEL_DESCRIPTOR = 3
"""The file descriptor of a worker's channel."""
_MIN_MOVED_DESCRIPTOR = 200
_READ_BYTES = 256 * 1024


class Channel(asyncio.Protocol):
    """Frames to and from the node.

    Until ``start`` it reads and writes at once, as loading a service needs it; from then on the
    event loop reads, and writes what the socket does not take at once.
    """

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._socket = _take_socket()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(self._take)
        self._early: list[Frame] = []
        self._on_message: Callable[[Frame], None] = self._early.append
        # A process that the service forks has no channel: two would write into one another.
        os.register_at_fork(after_in_child=self._close_in_child)

    def receive_first(self) -> Frame:
        """Waits for the first message."""
        while not self._early:
            chunk = self._socket.recv(_READ_BYTES)
            if not chunk:
                self._on_lost()
            self._reader.push(chunk)
        return self._early.pop(0)

    async def start(self, on_message: Callable[[Frame], None]) -> None:
        """Gives every further message to ``on_message``, on the event loop."""
        self._on_message = on_message
        while self._early:
            on_message(self._early.pop(0))
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        # A socket that is connected already, of whatever family.
        self._transport, _ = await loop.create_connection(lambda: self, sock=self._socket)
        self._transport.set_write_buffer_limits(high=8 * 1024 * 1024)

    def send(self, header: Mapping[str, Any], attachments: Attachments | None = None) -> None:
        """Sends a message; on the event loop's thread only, once it is started."""
        self.write(encode_frame(header, attachments))

    def write(self, frame: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frame)
        else:
            self._socket.sendall(frame)

    async def flush(self) -> None:
        """Waits until the operating system has taken everything that was sent."""
        while self._transport is not None and self._transport.get_write_buffer_size() > 0:
            await asyncio.sleep(0.001)

    def data_received(self, data: bytes) -> None:
        self._reader.push(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()

    def _take(self, frame: Frame) -> None:
        self._on_message(frame)

    def _close_in_child(self) -> None:
        os.close(self._socket.fileno())


def _take_socket() -> socket.socket:
    """Moves the channel to a number that nobody expects, and that ``exec`` does not pass on."""
    try:
        moved = fcntl.fcntl(CHANNEL_DESCRIPTOR, fcntl.F_DUPFD_CLOEXEC, _MIN_MOVED_DESCRIPTOR)
    except OSError as error:
        raise SystemExit("a worker is started by a node, not by hand") from error
    os.close(CHANNEL_DESCRIPTOR)
    return socket.socket(fileno=moved)
