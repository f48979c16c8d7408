"""A TCP proxy that breaks connections as it is told to, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass
class Cut:
    """Where a connection ends: after so many bytes of what goes there, or of what comes back."""

    after_sent: int | None = None
    after_received: int | None = None


Plan = Callable[[int], Cut | None]


class CuttingProxy:
    """Every connection asks `plan`, by its number from 0, where it is to be cut, if at all."""

    def __init__(self, port: int, plan: Plan) -> None:
        self._target = port
        self.plan = plan
        self.connections = 0
        self.cuts = 0
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        """Ends all connections that there are."""
        for each in self._open:
            _reset(each)
        self._open.clear()

    def close(self) -> None:
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            cut = self.plan(self.connections) or Cut()
            self.connections += 1
            far = socket.create_connection(("127.0.0.1", self._target))
            self._open += [near, far]
            for one, other, left in ((near, far, cut.after_sent), (far, near, cut.after_received)):
                forward = (one, other, left, (near, far))
                threading.Thread(target=self._forward, args=forward, daemon=True).start()

    def _forward(
        self,
        one: socket.socket,
        other: socket.socket,
        left: int | None,
        both: tuple[socket.socket, socket.socket],
    ) -> None:
        try:
            for chunk in _chunks(one):
                other.sendall(chunk if left is None else chunk[:left])
                if left is not None:
                    left -= len(chunk)
                    if left <= 0:
                        self.cuts += 1
                        break
        except OSError:
            pass  # The other direction was cut.
        for each in both:
            _reset(each)


def _chunks(source: socket.socket) -> Iterator[bytes]:
    while chunk := source.recv(65536):
        yield chunk


def _reset(end: socket.socket) -> None:
    """Ends a connection at once, as a broken network does, and wakes who reads from it."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        end.close()
