"""One call under way: its outlet, its abort, and its end, which is told exactly once."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..sdk.context import Aborted
from ..sdk.executable import Executable, IncomingCall
from .call_log import CallLog, LogBudget
from .outbox import Outbox
from .progress import ProgressReporter
from .units import UsageReport

_ABORT_MESSAGES = {
    "timeout": "the time of this call is up",
    "cancelled": "the task was cancelled",
    "shutdown": "the server is stopping",
    "caller_gone": "the caller is gone",
}


class CallOutlet:
    """Sends what a call tells. Most calls tell nothing, so each part is made when needed."""

    __slots__ = ("_budget", "_has_progress", "_id", "_log", "_outbox", "_reporter", "_usage")

    def __init__(self, call_id: int, has_progress: bool, outbox: Outbox, budget: LogBudget) -> None:
        self._id = call_id
        self._has_progress = has_progress
        self._outbox = outbox
        self._budget = budget
        self._log: CallLog | None = None
        self._reporter: ProgressReporter | None = None
        self._usage: UsageReport | None = None

    def progress(self, fraction: float, message: str = "") -> None:
        if not self._has_progress:
            return
        if self._reporter is None:
            self._reporter = ProgressReporter(self._id, self._outbox)
        self._reporter.report(fraction, message)

    def usage(self, units: Mapping[str, Any]) -> None:
        if self._usage is None:
            warn = partial(self.log, "warn")
            self._usage = UsageReport(self._id, self._outbox, warn)
        self._usage.add(units)

    def log(self, level: str, message: str, fields: Mapping[str, Any] | None = None) -> None:
        if self._log is None:
            self._log = CallLog(self._id, self._outbox, self._budget)
        self._log.write(level, message, fields)

    def close(self) -> None:
        """Sends what waits, and drops everything that comes later."""
        if self._reporter is not None:
            self._reporter.close()
        if self._usage is not None:
            self._usage.close()
        if self._log is not None:
            self._log.close()


class Run:
    """A function that is running: an asyncio task, or a thread of its own."""

    __slots__ = (
        "_lock",
        "_thread_id",
        "aborts",
        "calls",
        "executable",
        "is_batch",
        "task",
    )

    def __init__(
        self, executable: Executable, calls: Mapping[int, IncomingCall], *, is_batch: bool = False
    ) -> None:
        self.executable = executable
        self.calls = calls
        """By id; several only for a batch."""
        self.is_batch = is_batch
        self.task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self.aborts = False

    @property
    def is_task(self) -> bool:
        """True where no caller waits for the answer."""
        return bool(self.executable.manifest["kind"] == "task")

    @property
    def only(self) -> IncomingCall:
        """The call, where there is one."""
        (call,) = self.calls.values()
        return call

    def abort(self, reason: str) -> None:
        """Ends the function: by cancellation, or by an exception raised in its thread.

        Code in C does not hear it. The node kills the worker after its grace period.
        """
        if self.aborts:
            return
        self.aborts = True
        if self.task is not None:
            # Cancelled before its first step, which comes next, a task would end without a word.
            message = _ABORT_MESSAGES.get(reason, reason)
            self.task.get_loop().call_soon(self.task.cancel, message)
            return
        with self._lock:
            if self._thread_id is not None:
                _raise_in(self._thread_id, Aborted)

    def enter_thread(self) -> None:
        """From now on, an abort is raised in this thread; one that came before is raised here."""
        with self._lock:
            if not self.aborts:
                self._thread_id = threading.get_ident()
                return
        raise Aborted("the call was aborted before it began")

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Within it, nothing is raised in the thread of the function."""
        if self.task is not None:
            yield
            return
        self.leave_thread()
        yield
        self.enter_thread()

    def leave_thread(self) -> None:
        """Nothing is raised in the thread any more once this has returned.

        An exception that is under way may be raised in here: call it again.
        """
        with self._lock:
            if self._thread_id is not None:
                _raise_in(self._thread_id, None)
                self._thread_id = None


def _raise_in(thread_id: int, exception: type[BaseException] | None) -> None:
    """Raises an exception in a thread; None takes back one that it has not met yet."""
    thrown = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), thrown)
