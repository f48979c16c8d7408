"""How long a caller waits for a dependency: as its own service declares.

Under ``bentoml serve`` a dependency answers 504 when its ``traffic.timeout`` is over before its
answer has begun. What runs on the event loop is cancelled then; in a thread, ``Aborted`` is raised,
which code in C does not hear: so a synchronous method runs in a thread that its caller can leave.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any

from bentoml.exceptions import BentoMLException

from ..sdk.context import Aborted
from .turns import LOOK_SECONDS


def timed_out(seconds: float) -> BentoMLException:
    """What a caller gets who has waited as long as the service declares."""
    message = f"Not able to process the request in {seconds} seconds"
    return BentoMLException(message, error_code=HTTPStatus.GATEWAY_TIMEOUT)


class Threaded:
    """One call of a function, in a thread of its own. Whoever waits for it may abort it."""

    def __init__(self, run: Callable[[], Any], context: contextvars.Context | None = None) -> None:
        self.end: Future[Any] = Future()
        # From here on, who cancels the future does not end the function.
        self.end.set_running_or_notify_cancel()
        self._run = run
        self._lock = threading.Lock()
        self._aborted = False
        self._thread_id: int | None = None
        work = (context or contextvars.copy_context()).run
        threading.Thread(target=work, args=(self._work,), daemon=True).start()

    def abort(self) -> None:
        """Raises ``Aborted`` where the function is, once. It does not wait for its end."""
        with self._lock:
            if self._aborted or self.end.done():
                return
            self._aborted = True
            if self._thread_id is not None:
                _raise_in(self._thread_id, Aborted)

    def result(self, seconds: float) -> Any:
        """For a thread that waits: an abort of its own reaches the function, and waits for it."""
        try:
            return result_within(self.end, seconds)
        except BaseException as error:
            self.abort()
            if not isinstance(error, BentoMLException):
                # So that the node sees a function that does not hear its abort.
                wait([self.end])
            raise

    async def result_async(self, seconds: float) -> Any:
        """The same on the event loop, which waits for nothing that was aborted."""
        try:
            return await within(seconds, asyncio.wrap_future(self.end))
        except BaseException:
            self.abort()
            raise

    def _work(self) -> None:
        try:
            self._attempt()
        except BaseException as error:
            self._finish(error)
        finally:
            # Only where an abort met the lines above.
            if not self.end.done():
                self.end.set_exception(Aborted("the call was aborted"))

    def _attempt(self) -> None:
        self._enter()
        result = self._run()
        self._leave()
        self.end.set_result(result)

    def _finish(self, error: BaseException) -> None:
        self._leave()
        self.end.set_exception(error)

    def _enter(self) -> None:
        with self._lock:
            if not self._aborted:
                self._thread_id = threading.get_ident()
                return
        raise Aborted("the call was aborted before it began")

    def _leave(self) -> None:
        with self._lock:
            if self._thread_id is not None:
                _raise_in(self._thread_id, None)
                self._thread_id = None


class Limit:
    """Bounds what one task does within it: ``async with Limit(seconds)``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "it is used within a task"
        self._task = task
        self._timer = task.get_loop().call_later(self._seconds, self._expire)

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._expired and isinstance(error, asyncio.CancelledError):
            getattr(self._task, "uncancel", _nothing)()
            raise timed_out(self._seconds) from None

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()


async def within(seconds: float, work: Awaitable[Any]) -> Any:
    """The result of the work. When its time is over it is cancelled, and not waited for."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    if task.done():
        return task.result()
    task.add_done_callback(_hear)
    task.cancel()
    raise timed_out(seconds)


def result_within(future: Future[Any], seconds: float) -> Any:
    """Waits for a result so that an abort, which is raised between two looks, is heard."""
    deadline = time.monotonic() + seconds
    try:
        while True:
            left = deadline - time.monotonic()
            try:
                return future.result(max(0.0, min(left, LOOK_SECONDS)))
            except NotYet:
                if future.done():
                    raise
                if left <= 0:
                    raise timed_out(seconds) from None
    finally:
        # Who leaves wants no result: what has not begun does not begin.
        future.cancel()


def _hear(task: asyncio.Future[Any]) -> None:
    """Nobody wants to know how it ended."""
    with suppress(BaseException):
        task.result()


def _raise_in(thread_id: int, exception: type[BaseException] | None) -> None:
    """Raises an exception in a thread; None takes back one that it has not met yet."""
    thrown = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), thrown)


def _nothing() -> None:
    """Before Python 3.11 nothing counts the cancellations of a task."""
