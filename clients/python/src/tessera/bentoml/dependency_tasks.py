"""Tasks of a dependency: ``self.other.job.submit(…)``, with the words of BentoML's own client.

They run in this process, in the turns of their service, for nobody who waits, and are kept as long
as it runs; the newest only, because nobody deletes them. BentoML keeps them as long as its server.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bentoml.exceptions import BentoMLException, InvalidArgument, NotFound

from . import internals

MAX_KEPT = 1_000
"""Ended tasks of one method whose results can be read."""

Later = Callable[[Coroutine[Any, Any, None]], None]
"""Has the host wait for work, before it ends."""


@dataclass(slots=True)
class Started:
    """A method that runs."""

    end: Future[Any]
    stop: Callable[[], Any]


@dataclass(slots=True)
class _Kept:
    """A task with what it was submitted with, to begin it anew."""

    started: Started
    args: Sequence[Any]
    named: Mapping[str, Any]
    is_cancelled: bool = False


class Tasks:
    """The tasks of one method. Safe to use from any thread."""

    def __init__(
        self,
        name: str,
        start: Callable[[Sequence[Any], Mapping[str, Any]], Started],
        later: Later,
    ) -> None:
        self._name = name
        self._start = start
        self._later = later
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def submit(self, args: Sequence[Any], named: Mapping[str, Any]) -> str:
        """Begins a task; returns its id."""
        task_id = uuid.uuid4().hex
        kept = _Kept(self._start(args, named), args, named)
        with self._lock:
            self._kept[task_id] = kept
            self._forget()
        self._later(_ended(kept.started.end))
        return task_id

    def status(self, task_id: str) -> Any:
        """``ResultStatus`` of BentoML."""
        kept = self._find(task_id)
        if kept.is_cancelled:
            return internals.task_status("cancelled")
        end = kept.started.end
        if not end.done():
            return internals.task_status("running")
        return internals.task_status("success" if _error_of(end) is None else "failure")

    def result(self, task_id: str) -> Any:
        """What the method returned; raises what it raised."""
        kept = self._find(task_id)
        if kept.is_cancelled:
            raise BentoMLException(f"task {task_id} of {self._name} was cancelled")
        self._refuse_unfinished(task_id, kept)
        error = _error_of(kept.started.end)
        if error is not None:
            raise error
        return kept.started.end.result()

    def cancel(self, task_id: str) -> None:
        """Stops it, as far as the method hears it. Nothing, where it has ended."""
        kept = self._find(task_id)
        if not kept.started.end.done():
            kept.is_cancelled = True
            kept.started.stop()

    def retry(self, task_id: str) -> str:
        """Begins an ended task anew, as another one; returns the id of that."""
        kept = self._find(task_id)
        self._refuse_unfinished(task_id, kept)
        return self.submit(kept.args, kept.named)

    def _find(self, task_id: str) -> _Kept:
        with self._lock:
            kept = self._kept.get(task_id)
        if kept is None:
            raise NotFound(f"task_id {task_id} not found among the tasks of {self._name}")
        return kept

    def _refuse_unfinished(self, task_id: str, kept: _Kept) -> None:
        if not kept.is_cancelled and not kept.started.end.done():
            raise InvalidArgument(f"task {task_id} is not completed yet")

    def _forget(self) -> None:
        """Drops the oldest that have ended, where there are too many."""
        excess = len(self._kept) - MAX_KEPT
        if excess > 0:
            ended = [key for key, each in self._kept.items() if each.started.end.done()]
            for key in ended[:excess]:
                del self._kept[key]


@dataclass(frozen=True)
class Task:
    """A task of a dependency, for a synchronous caller."""

    id: str
    _tasks: Tasks

    def get_status(self) -> Any:
        return self._tasks.status(self.id)

    def get(self) -> Any:
        return self._tasks.result(self.id)

    def cancel(self) -> None:
        self._tasks.cancel(self.id)

    def retry(self) -> Task:
        return Task(self._tasks.retry(self.id), self._tasks)


@dataclass(frozen=True)
class AsyncTask:
    """The same for a caller on the event loop."""

    id: str
    _tasks: Tasks

    async def get_status(self) -> Any:
        return self._tasks.status(self.id)

    async def get(self) -> Any:
        return self._tasks.result(self.id)

    async def cancel(self) -> None:
        self._tasks.cancel(self.id)

    async def retry(self) -> AsyncTask:
        return AsyncTask(self._tasks.retry(self.id), self._tasks)


class TaskMethod:
    """A task of a dependency: called, it answers; submitted, it runs behind."""

    def __init__(self, call: Callable[..., Any], tasks: Tasks) -> None:
        self._call = call
        self._tasks = tasks

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(*args, **named)

    def submit(self, *args: Any, **named: Any) -> Task:
        return Task(self._tasks.submit(args, named), self._tasks)

    def get_status(self, task_id: str) -> Any:
        return self._tasks.status(task_id)

    def get(self, task_id: str) -> Any:
        return self._tasks.result(task_id)

    def cancel(self, task_id: str) -> None:
        self._tasks.cancel(task_id)

    def retry(self, task_id: str) -> Task:
        return Task(self._tasks.retry(task_id), self._tasks)


class AsyncTaskMethod:
    """The same for a caller on the event loop."""

    def __init__(self, call: Callable[..., Any], tasks: Tasks) -> None:
        self._call = call
        self._tasks = tasks

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(*args, **named)

    async def submit(self, *args: Any, **named: Any) -> AsyncTask:
        return AsyncTask(self._tasks.submit(args, named), self._tasks)

    async def get_status(self, task_id: str) -> Any:
        return self._tasks.status(task_id)

    async def get(self, task_id: str) -> Any:
        return self._tasks.result(task_id)

    async def cancel(self, task_id: str) -> None:
        self._tasks.cancel(task_id)

    async def retry(self, task_id: str) -> AsyncTask:
        return AsyncTask(self._tasks.retry(task_id), self._tasks)


def _error_of(end: Future[Any]) -> BaseException | None:
    """How it failed; None where it has a result."""
    if end.cancelled():
        return asyncio.CancelledError("the task was cancelled")
    return end.exception()


async def _ended(end: Future[Any]) -> None:
    """Waits for the end, whatever it is."""
    with suppress(BaseException):
        await asyncio.wrap_future(end)
