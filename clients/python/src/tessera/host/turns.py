"""Turns of streams at the channel.

What the operating system has not taken yet is sent before anything that comes later, results of
other calls too; so pieces enter one after another, in the order in which they came, while little
of them is unsent.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

MAX_UNSENT_BYTES = 1024 * 1024
"""Bytes of pieces that may be unsent: a result behind them waits for a few milliseconds."""


@dataclass(eq=False)
class Turn:
    """A piece that waits to be sent."""

    size: int
    wake: Callable[[], None]
    entered: bool = False


class Turns:
    """Lets pieces in while little is unsent; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Turn] = deque()
        self._unsent = 0

    def enter(self, size: int, wake: Callable[[], None]) -> Turn:
        """Takes room for a piece, or a place behind others: ``wake`` is then called, from any
        thread, once it has entered."""
        turn = Turn(size, wake)
        with self._lock:
            if not self._waiting and self._has_room(size):
                self._take(turn)
            else:
                self._waiting.append(turn)
        return turn

    def give_up(self, turn: Turn) -> None:
        """The piece will not be sent."""
        with self._lock:
            if turn.entered:
                self._unsent -= turn.size
            else:
                self._waiting.remove(turn)
            woken = self._next()
        _wake(woken)

    def left(self, size: int) -> None:
        """The operating system has taken these bytes of pieces."""
        with self._lock:
            self._unsent -= size
            woken = self._next()
        _wake(woken)

    def _next(self) -> list[Turn]:
        woken = []
        while self._waiting and self._has_room(self._waiting[0].size):
            turn = self._waiting.popleft()
            self._take(turn)
            woken.append(turn)
        return woken

    def _take(self, turn: Turn) -> None:
        self._unsent += turn.size
        turn.entered = True

    def _has_room(self, size: int) -> bool:
        # One piece of any size has room where none is unsent.
        return self._unsent == 0 or self._unsent + size <= MAX_UNSENT_BYTES


def _wake(turns: list[Turn]) -> None:
    for turn in turns:
        turn.wake()
