"""What a worker sends, in its order, from any thread.

Results and pieces of one turn of the event loop go together, because a message costs more than
its content. The changes of metrics that calls recorded are sent before their results.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from .channel import Channel
from .frames import Attachments, encode_frame
from .turns import Turns

MAX_ENTRIES_PER_MESSAGE = 32
"""Results, or pieces, that are sent together."""
MAX_CHANGES_PER_MESSAGE = 500
LARGE_MESSAGE_BYTES = 1024 * 1024
"""Bytes of attachments that are sent without waiting for more."""

Entry = Callable[[Attachments], dict[str, Any]]
"""Writes one result or piece: returns its part of the header, and adds its attachments."""

Changes = tuple[list[dict[str, Any]], list[dict[str, Any]]]


class Outbox:
    """Sends frames, results and pieces."""

    def __init__(self, channel: Channel, take_changes: Callable[[], Changes]) -> None:
        self._channel = channel
        self._take_changes = take_changes
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        # Frames, and entries with the type of their message.
        self._queue: deque[bytes | tuple[str, Entry, int]] = deque()
        self.turns = Turns()
        self._woken = False
        self._has_results = False

    def post(self, header: dict[str, Any], attachments: Attachments | None = None) -> None:
        """Sends a message at once; on the event loop's own thread, after what was added before."""
        frame = encode_frame(header, attachments)
        if threading.get_ident() == self._thread:
            self._queue.append(frame)
            self.flush()
        else:
            self._channel.write(frame)

    def add(self, kind: str, entry: Entry, size: int = 0) -> None:
        """Sends an entry of a message of ``results`` or ``chunks`` at the end of this turn.

        ``size`` is what its turn took, which leaves with it."""
        self._queue.append((kind, entry, size))
        self._has_results |= kind == "results"
        self._wake()

    def flush(self) -> None:
        """Sends everything now; on the event loop's thread."""
        self._woken = False
        queue = self._queue
        if self._has_results:
            self._has_results = False
            self.send_changes()
        entries: list[dict[str, Any]] = []
        attachments = Attachments()
        kind = ""
        size = 0
        while queue:
            item = queue.popleft()
            if isinstance(item, bytes) or item[0] != kind:
                self._send_entries(kind, entries, attachments, size)
                entries, attachments, size = [], Attachments(), 0
            if isinstance(item, bytes):
                kind = ""
                self._channel.write(item)
                continue
            kind = item[0]
            entries.append(item[1](attachments))
            size += item[2]
            if len(entries) == MAX_ENTRIES_PER_MESSAGE or attachments.size >= LARGE_MESSAGE_BYTES:
                self._send_entries(kind, entries, attachments, size)
                entries, attachments, size = [], Attachments(), 0
        self._send_entries(kind, entries, attachments, size)

    def send_changes(self) -> None:
        """Sends what was counted since the last time."""
        changes, dropped = self._take_changes()
        while changes or dropped:
            some, changes = changes[:MAX_CHANGES_PER_MESSAGE], changes[MAX_CHANGES_PER_MESSAGE:]
            attachments = Attachments()
            header = {
                "type": "metrics",
                "changes": attachments.add(json.dumps(some)),
                "dropped": dropped,
            }
            self._channel.send(header, attachments)
            dropped = []

    def _send_entries(
        self, kind: str, entries: list[dict[str, Any]], attachments: Attachments, size: int
    ) -> None:
        if entries:
            header = {"type": kind, kind: entries}
            frame = encode_frame(header, attachments if attachments.size else None)
            self._channel.write(frame, (lambda: self.turns.left(size)) if size else None)

    def _wake(self) -> None:
        if self._woken:
            return
        self._woken = True
        if threading.get_ident() == self._thread:
            self.loop.call_soon(self.flush)
        else:
            self.loop.call_soon_threadsafe(self.flush)
