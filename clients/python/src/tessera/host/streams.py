"""Streamed results: pieces go to the node as they are made, no faster than it takes them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from ..sdk.context import Aborted
from ..sdk.executable import IncomingCall
from .failure import piece_too_large
from .frames import Attachments
from .heads import head_text
from .outbox import Outbox
from .results import MAX_INLINE_FILE_BYTES, MAX_INLINE_RESULT_CHARACTERS
from .turns import Turn

WINDOW_BYTES = 256 * 1024
"""A further piece may be sent while those that are not consumed cost less than this."""
MIN_PIECE_COST_BYTES = 8 * 1024
"""What a small piece costs: it takes memory beyond its bytes, and 32 fill a window."""


class Stream:
    """The pieces of one call."""

    def __init__(self, call_id: int, call: IncomingCall, outbox: Outbox) -> None:
        self._id = call_id
        self._call = call
        self._outbox = outbox
        # The costs of the pieces that were sent and not consumed, in their order.
        self._costs: deque[int] = deque()
        self._room = WINDOW_BYTES
        self._sequence = 0
        self._changed = threading.Condition()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def more(self, count: int) -> None:
        """So many pieces were consumed."""
        with self._changed:
            for _ in range(min(count, len(self._costs))):
                self._room += self._costs.popleft()
            self._wake()

    def close(self) -> None:
        """The call was aborted: nothing waits for the node any more."""
        with self._changed:
            self._closed = True
            self._wake()

    async def send_all(self, pieces: AsyncIterator[str | bytes]) -> int:
        """Sends the pieces, each when the window has room, and returns their number."""
        try:
            while True:
                while self._room <= 0:
                    await self._change()
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return self._end()
                size = self._size_of(piece)
                turn = self._outbox.turns.enter(size, self._wake_on_loop)
                try:
                    while not turn.entered:
                        await self._change()
                except BaseException:
                    self._outbox.turns.give_up(turn)
                    raise
                self._send(piece, size)
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
                self._wait_for(lambda: self._room > 0)
                try:
                    piece = next(pieces)
                except StopIteration:
                    return self._end()
                size = self._size_of(piece)
                turn = self._outbox.turns.enter(size, self._wake_thread)
                self._enter(turn)
                self._send(piece, size)
                # Gives the event loop its turn, which sends it.
                time.sleep(0)
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()

    def _enter(self, turn: Turn) -> None:
        try:
            self._wait_for(lambda: turn.entered)
        except BaseException:
            self._outbox.turns.give_up(turn)
            raise

    def _wait_for(self, is_due: Callable[[], bool]) -> None:
        """Waits in a thread, as long as the call is not aborted."""
        with self._changed:
            while not is_due() and not self._closed:
                self._changed.wait()
        if self._closed:
            raise Aborted("the call was aborted while the node took no more pieces")

    async def _change(self) -> None:
        """Waits on the event loop for more room, or for a turn."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _end(self) -> int:
        if self._closed:
            raise Aborted("the call was aborted before its last piece")
        return self._sequence

    def _size_of(self, piece: str | bytes) -> int:
        """The size of a piece on its way, in bytes."""
        is_text = isinstance(piece, str)
        limit = MAX_INLINE_RESULT_CHARACTERS if is_text else MAX_INLINE_FILE_BYTES
        if len(piece) > limit:
            raise piece_too_large(self._call.endpoint, limit)
        if isinstance(piece, bytes) or piece.isascii():
            return len(piece)
        return len(piece.encode("utf-8", "replace"))

    def _send(self, piece: str | bytes, size: int) -> None:
        head = head_text(self._call) if self._sequence == 0 else None
        with self._changed:
            cost = max(size, MIN_PIECE_COST_BYTES)
            self._costs.append(cost)
            self._room -= cost
            self._sequence += 1
            sequence = self._sequence

        def entry(attachments: Attachments) -> dict[str, object]:
            data = attachments.text(piece) if isinstance(piece, str) else attachments.add(piece)
            chunk: dict[str, object] = {"id": self._id, "sequence": sequence, "data": data}
            if head is not None:
                chunk["response"] = attachments.add(head)
            return chunk

        self._outbox.add("chunks", entry, size)

    def _wake_thread(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wake_on_loop(self) -> None:
        self._outbox.loop.call_soon_threadsafe(self._wake_waiter)

    def _wake(self) -> None:
        self._changed.notify_all()
        self._wake_waiter()

    def _wake_waiter(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
