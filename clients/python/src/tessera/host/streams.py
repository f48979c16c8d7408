"""Streamed results: pieces go to the node as they are made, no faster than it takes them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

from ..sdk.context import Aborted
from ..sdk.executable import IncomingCall
from .failure import piece_too_large
from .frames import Attachments
from .heads import head_text
from .outbox import Outbox
from .results import MAX_INLINE_FILE_BYTES, MAX_INLINE_RESULT_CHARACTERS

WINDOW_PIECES = 32
"""Pieces of a call that are sent before the node asks for more."""


class Stream:
    """The pieces of one call."""

    def __init__(self, call_id: int, call: IncomingCall, outbox: Outbox) -> None:
        self._id = call_id
        self._call = call
        self._outbox = outbox
        self._credit = WINDOW_PIECES
        self._sequence = 0
        self._changed = threading.Condition()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def more(self, count: int) -> None:
        """The node takes so many more pieces."""
        with self._changed:
            self._credit += count
            self._wake()

    def close(self) -> None:
        """The call was aborted: nothing waits for the node any more."""
        with self._changed:
            self._closed = True
            self._wake()

    async def send_all(self, pieces: AsyncIterator[str | bytes]) -> int:
        """Sends the pieces, each with credit only, and returns their number."""
        try:
            while True:
                while self._credit == 0:
                    self._waiter = asyncio.get_running_loop().create_future()
                    await self._waiter
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return self._end()
                self._send(piece)
                # It leaves the process before the function goes on, which may not wait for long.
                await asyncio.sleep(0)
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    def send_all_in_thread(self, pieces: Iterator[str | bytes]) -> int:
        """The same for a function in a thread of its own."""
        try:
            while True:
                with self._changed:
                    while self._credit == 0 and not self._closed:
                        self._changed.wait()
                if self._closed:
                    raise Aborted("the call was aborted while the node took no more pieces")
                try:
                    piece = next(pieces)
                except StopIteration:
                    return self._end()
                self._send(piece)
                # Gives the event loop its turn, which sends it.
                time.sleep(0)
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()

    def _end(self) -> int:
        if self._closed:
            raise Aborted("the call was aborted before its last piece")
        return self._sequence

    def _send(self, piece: str | bytes) -> None:
        is_text = isinstance(piece, str)
        limit = MAX_INLINE_RESULT_CHARACTERS if is_text else MAX_INLINE_FILE_BYTES
        if len(piece) > limit:
            raise piece_too_large(self._call.endpoint, limit)
        head = head_text(self._call) if self._sequence == 0 else None
        with self._changed:
            self._credit -= 1
            self._sequence += 1
            sequence = self._sequence

        def entry(attachments: Attachments) -> dict[str, object]:
            data = attachments.text(piece) if isinstance(piece, str) else attachments.add(piece)
            chunk: dict[str, object] = {"id": self._id, "sequence": sequence, "data": data}
            if head is not None:
                chunk["response"] = attachments.add(head)
            return chunk

        self._outbox.add("chunks", entry)

    def _wake(self) -> None:
        self._changed.notify_all()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
