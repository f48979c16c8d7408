"""A limiter of threads that survives aborts.

An abort is raised in a thread at any instruction, also between the one that takes a turn and the
one that would have it given back. So a turn belongs to a thread, and ends with it at the latest.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

LOOK_SECONDS = 0.05
"""How long a thread waits before it looks again. An abort is raised when it does."""


class Turns:
    """Lets so many threads run at a time."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._holders: set[threading.Thread] = set()
        # Both are of C, so that an abort finds them taken or not, and never in between.
        self._lock = threading.Lock()
        self._freed: SimpleQueue[None] = SimpleQueue()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Waits for a turn, and gives it back."""
        thread = threading.current_thread()
        try:
            while not self._take(thread):
                self._wait()
            yield
        finally:
            with self._lock:
                self._holders.discard(thread)
            if self._freed.qsize() < self._count:
                self._freed.put(None)

    def _take(self, thread: threading.Thread) -> bool:
        with self._lock:
            if len(self._holders) >= self._count:
                self._holders = {each for each in self._holders if each.is_alive()}
            if len(self._holders) >= self._count:
                return False
            self._holders.add(thread)
            return True

    def _wait(self) -> None:
        try:
            self._freed.get(timeout=LOOK_SECONDS)
        except Empty:
            return
