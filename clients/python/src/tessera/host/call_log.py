"""The log of one call: what the function says by its context, ``print`` and ``logging``.

Lines go at once while the worker's budget has room. Beyond it they are held, the last ones in
place of the first, and follow at the budget's rate and at the end of the call: a log that is
written too fast lacks lines in its middle. The rate is that of ``src/protocol/log-rate.ts``.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from .frames import Attachments
from .outbox import Outbox

LINES_PER_SECOND = 100
LINE_CHARACTERS = 512
"""Length up to which a line counts as one; a longer one counts as several."""
MAX_LIVE_LINES = 200
"""Lines that calls may write in one go before they are held back."""
MAX_LAST_LINES = 800
"""Lines that are sent at the ends of calls in one go."""
MAX_TEXT_CHARACTERS = 8192


class LogBudget:
    """How many lines a worker may send now: a token bucket for all of its calls."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # Below 0, down to -MAX_LAST_LINES, after the ends of logs were sent.
        self._left = float(MAX_LIVE_LINES)
        self._filled_at = time.monotonic()

    def take(self, lines: float, *, last: bool = False) -> bool:
        """Takes room for a line that counts as so many; False where there is not as much."""
        self._fill()
        if self._left + (MAX_LAST_LINES if last else 0) < lines:
            return False
        self._left -= lines
        return True

    def seconds_until(self, lines: float) -> float:
        """How long until there is room for a line that counts as so many."""
        self._fill()
        return max(0.0, (lines - self._left) / LINES_PER_SECOND)

    def _fill(self) -> None:
        now = time.monotonic()
        self._left = min(MAX_LIVE_LINES, self._left + (now - self._filled_at) * LINES_PER_SECOND)
        self._filled_at = now


Line = tuple[str, str, "str | None", float]
"""Level, message, fields as JSON text, and as how many lines it counts."""


class CallLog:
    """Safe to write to from any thread."""

    def __init__(self, call_id: int, outbox: Outbox, budget: LogBudget) -> None:
        self._id = call_id
        self._outbox = outbox
        self._budget = budget
        self._loop = outbox.loop
        self._held: deque[Line] = deque()
        self._held_lines = 0.0
        self._skipped = 0
        self._waits = False
        self._closed = False

    def write(self, level: str, message: str, fields: Mapping[str, Any] | None = None) -> None:
        text = _clip(message)
        fields_json = _fields_json(fields) if fields else None
        lines = max(1.0, (len(text) + len(fields_json or "")) / LINE_CHARACTERS)
        with self._budget.lock:
            if self._closed:
                return
            self._held.append((level, text, fields_json, lines))
            self._held_lines += lines
            self._send_held()
            while self._held_lines > MAX_LAST_LINES:
                self._take_first()
                self._skipped += 1

    def close(self) -> None:
        """Sends the last lines, and drops everything that is logged from now on."""
        with self._budget.lock:
            self._closed = True
            last: list[Line] = []
            while self._held and self._budget.take(self._held[-1][3], last=True):
                last.append(self._held.pop())
            self._skipped += len(self._held)
            self._held.clear()
            for line in reversed(last):
                self._send(line)

    def _send_held(self) -> None:
        while self._held:
            lines = self._held[0][3]
            if not self._budget.take(lines):
                if not self._waits:
                    self._waits = True
                    self._loop.call_soon_threadsafe(self._wait, self._budget.seconds_until(lines))
                return
            self._send(self._take_first())

    def _wait(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        with self._budget.lock:
            self._waits = False
            if not self._closed:
                self._send_held()

    def _take_first(self) -> Line:
        line = self._held.popleft()
        self._held_lines -= line[3]
        return line

    def _send(self, line: Line) -> None:
        level, message, fields_json, _ = line
        attachments = Attachments()
        header: dict[str, Any] = {"type": "log", "id": self._id, "level": level}
        header["message"] = attachments.text(message)
        if fields_json is not None:
            header["fieldsJson"] = attachments.text(fields_json)
        if self._skipped:
            header["skipped"] = self._skipped
            self._skipped = 0
        self._outbox.post(header, attachments)


def _clip(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[: MAX_TEXT_CHARACTERS - 1] + "…"


def _fields_json(fields: Mapping[str, Any]) -> str:
    """The fields as JSON. Fields that JSON cannot carry must not fail the call."""
    try:
        text = json.dumps(fields, allow_nan=False, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps({"dropped": _clip(f"fields that JSON cannot carry: {error}")})
    if len(text) > MAX_TEXT_CHARACTERS:
        return json.dumps({"dropped": f"fields of more than {MAX_TEXT_CHARACTERS} characters"})
    return text
