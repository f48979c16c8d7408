"""The channel to the node: a socket that the process inherits, frames in both directions.

Any thread writes to it at once. A line that a function logs before it blocks the process for good
(a loop in C that keeps the interpreter's lock) must not wait for a turn of the event loop.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from .frames import Attachments, Frame, FrameReader, encode_frame

CHANNEL_DESCRIPTOR = 3
"""The file descriptor of a worker's channel."""
_MIN_MOVED_DESCRIPTOR = 200


class Channel(asyncio.BufferedProtocol):
    """Frames to and from the node.

    Until ``start`` it reads and writes at once, as loading a service needs it; from then on the
    event loop reads, and writes what the socket does not take at once.
    """

    _loop: asyncio.AbstractEventLoop | None = None
    """The loop that reads and writes, once it is started."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._socket = _take_socket()
        self._lock = threading.Lock()
        self._pending: deque[tuple[memoryview, Callable[[], None] | None]] = deque()
        self._usable = True
        self._reader = FrameReader(self._take)
        self._early: list[Frame] = []
        self._on_message: Callable[[Frame], None] = self._early.append
        # A process that the service forks has no channel: two would write into one another.
        os.register_at_fork(after_in_child=self._close_in_child)

    def receive_first(self) -> Frame:
        """Waits for the first message."""
        while not self._early:
            size = self._socket.recv_into(self._reader.room())
            if size == 0:
                self._on_lost()
            self._reader.filled(size)
        return self._early.pop(0)

    async def start(self, on_message: Callable[[Frame], None]) -> None:
        """Gives every further message to ``on_message``, on the event loop."""
        self._on_message = on_message
        while self._early:
            on_message(self._early.pop(0))
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        # The transport has the socket's own descriptor, and lets nobody else watch it.
        self._writer = fcntl.fcntl(self._socket, fcntl.F_DUPFD_CLOEXEC, _MIN_MOVED_DESCRIPTOR)
        # A socket that is connected already, of whatever family.
        await loop.create_connection(lambda: self, sock=self._socket)
        self._loop = loop

    def send(self, header: Mapping[str, Any], attachments: Attachments | None = None) -> None:
        """Sends a message."""
        self.write(encode_frame(header, attachments))

    def write(self, frame: bytes, left: Callable[[], None] | None = None) -> None:
        """Sends a frame, from any thread. ``left`` is called when it was handed to the operating
        system, which must not write."""
        with self._lock:
            if self._loop is None:
                self._socket.sendall(frame)
                if left is not None:
                    left()
                return
            waits = bool(self._pending)
            self._pending.append((memoryview(frame), left))
            if not waits and not self._write_pending():
                self._loop.call_soon_threadsafe(self._watch)

    async def flush(self) -> None:
        """Waits until the operating system has taken everything that was sent."""
        while self._pending:
            await asyncio.sleep(0.001)

    def _write_pending(self) -> bool:
        """Writes what the socket takes. Returns whether that was all; with the lock."""
        while self._pending and self._usable:
            frame, left = self._pending[0]
            try:
                sent = os.write(self._writer, frame)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:  # The node has gone, of which the reading side hears.
                self._usable = False
                break
            if sent < len(frame):
                self._pending[0] = (frame[sent:], left)
            else:
                self._pending.popleft()
                if left is not None:
                    left()
        if not self._usable:
            self._pending.clear()
        return True

    def _watch(self) -> None:
        if self._loop is not None:
            self._loop.add_writer(self._writer, self._go_on)

    def _go_on(self) -> None:
        with self._lock:
            if self._write_pending() and self._loop is not None:
                self._loop.remove_writer(self._writer)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.filled(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()

    def _take(self, frame: Frame) -> None:
        self._on_message(frame)

    def _close_in_child(self) -> None:
        # Another thread may have had the lock, and somebody else may get the descriptors' numbers.
        self._lock = threading.Lock()
        self._usable = False
        self._pending.clear()
        if self._loop is not None:
            os.close(self._writer)
        os.close(self._socket.fileno())


def _take_socket() -> socket.socket:
    """Moves the channel to a number that nobody expects, and that ``exec`` does not pass on."""
    try:
        moved = fcntl.fcntl(CHANNEL_DESCRIPTOR, fcntl.F_DUPFD_CLOEXEC, _MIN_MOVED_DESCRIPTOR)
    except OSError as error:
        raise SystemExit("a worker is started by a node, not by hand") from error
    os.close(CHANNEL_DESCRIPTOR)
    return socket.socket(fileno=moved)
