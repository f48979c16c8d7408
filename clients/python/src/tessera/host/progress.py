"""A rate limit for the progress of one call: one report per interval, and always the last one."""

from __future__ import annotations

import math
import threading
import time

from .outbox import Outbox

INTERVAL_SECONDS = 0.05
"""Least time between two messages of progress of one call."""
MAX_MESSAGE_CHARACTERS = 1024


class ProgressReporter:
    """A report after the interval is sent at once; an earlier one waits for the timer."""

    def __init__(self, call_id: int, outbox: Outbox) -> None:
        self._id = call_id
        self._outbox = outbox
        self._loop = outbox.loop
        self._lock = threading.Lock()
        self._sent_at = -math.inf
        self._waiting: tuple[float, str] | None = None
        self._has_timer = False
        self._closed = False

    def report(self, fraction: float, message: str = "") -> None:
        """``fraction`` is from 0 to 1; what is outside is moved to the next of them."""
        number = float(fraction)
        if math.isnan(number):
            return
        with self._lock:
            if self._closed:
                return
            self._waiting = (min(1.0, max(0.0, number)), str(message)[:MAX_MESSAGE_CHARACTERS])
            due_in = self._sent_at + INTERVAL_SECONDS - time.monotonic()
            if due_in <= 0:
                self._send()
            elif not self._has_timer:
                self._has_timer = True
                self._loop.call_soon_threadsafe(self._loop.call_later, due_in, self._fire)

    def close(self) -> None:
        """Sends the last report, and drops everything that comes later."""
        with self._lock:
            self._closed = True
            self._send()

    def _fire(self) -> None:
        with self._lock:
            self._has_timer = False
            self._send()

    def _send(self) -> None:
        if self._waiting is not None:
            fraction, message = self._waiting
            self._waiting = None
            self._sent_at = time.monotonic()
            report = {"type": "progress", "id": self._id, "fraction": fraction, "message": message}
            self._outbox.post(report)
