"""Threads for sync functions: each call has one of its own while it runs.

A thread that has ended its call waits a while for another, because making one costs more than a
short call. One that an abort was raised in is never used again: the exception may have left
behind what the next call would trip over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

IDLE_SECONDS = 10.0
"""How long a thread waits for another call."""

Work = Callable[[], bool]
"""What a thread does; False where the thread cannot be used for anything else."""


class Threads:
    """Runs work in threads. Safe to use from one thread only."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []

    def run(self, work: Work, name: str) -> None:
        """Begins it now, in a thread that does nothing else meanwhile."""
        try:
            thread = self._idle.pop()
        except IndexError:
            thread = _Thread(self._idle)
            thread.start()
        thread.name = name
        thread.work.put(work)


class _Thread(threading.Thread):
    def __init__(self, idle: list[_Thread]) -> None:
        super().__init__(daemon=True)
        self.work: SimpleQueue[Work] = SimpleQueue()
        self._idle_threads = idle

    def run(self) -> None:
        while True:
            try:
                work = self.work.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    self._idle_threads.remove(self)
                except ValueError:
                    # It was chosen a moment ago: its work is on the way.
                    continue
                return
            if not work():
                return
            del work
            self._idle_threads.append(self)
