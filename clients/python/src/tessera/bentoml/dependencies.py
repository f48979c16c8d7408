"""What ``bentoml.depends`` gives: a service in this process that keeps to what it declares.

Under ``bentoml serve`` a dependency is a server of its own, with its threads, batches, timeout and
tasks. Here it is an instance beside its caller, so its methods take the turns of their own service,
callers wait for them as long as their service says, and calls of a batchable one are joined,
whoever makes them: under load nothing waits, and what comes while the method runs goes together
into its next call.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import aclosing, closing
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from . import internals
from .dependency_tasks import AsyncTaskMethod, Later, Started, TaskMethod, Tasks
from .failures import output_invalid
from .manifest import timeout_of
from .timed import Limit, Threaded, result_within, within
from .turns import Turns

_END = object()


class Dependency:
    """One instance, as those who depend on it see it."""

    def __init__(
        self,
        service: Any,
        instance: Any,
        *,
        turns: Turns,
        loop: asyncio.AbstractEventLoop,
        later: Later,
    ) -> None:
        self._instance = instance
        methods = {
            name: _Method(service, instance, name, turns=turns, loop=loop, later=later)
            for name in service.apis
        }
        self.to_sync = _View({name: each.for_threads for name, each in methods.items()})
        self.to_async = _View({name: each.for_loop for name, each in methods.items()})
        self._methods = {
            name: each.for_loop if each.asynchronous else each.for_threads
            for name, each in methods.items()
        }

    def __getattr__(self, name: str) -> Any:
        method = self.__dict__["_methods"].get(name)
        return getattr(self.__dict__["_instance"], name) if method is None else method


class _View:
    """All methods in one manner."""

    def __init__(self, methods: Mapping[str, Callable[..., Any]]) -> None:
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_methods"][name]
        except KeyError:
            raise AttributeError(f"the service has no method {name}") from None


class _Method:
    """One method, for callers in threads and on the event loop."""

    def __init__(
        self,
        service: Any,
        instance: Any,
        name: str,
        *,
        turns: Turns,
        loop: asyncio.AbstractEventLoop,
        later: Later,
    ) -> None:
        method = service.apis[name]
        self._seconds = timeout_of(internals.configured(service))
        self._service = service
        self._function: Callable[..., Any] = getattr(instance, name)
        self._turns = turns
        self._loop = loop
        self._is_stream: bool = method.is_stream
        self._context_name: str | None = method.ctx_param
        self.asynchronous = inspect.iscoroutinefunction(method.func) or inspect.isasyncgenfunction(
            method.func
        )
        run = self._run_async if self.asynchronous else self._run
        self._joined = _Joined(method, run, loop) if method.batchable else None
        self.for_threads: Callable[..., Any] = self.call
        self.for_loop: Callable[..., Any] = self.call_async
        if method.is_task:
            tasks = Tasks(name, self.start, later)
            self.for_threads = TaskMethod(self.call, tasks)
            self.for_loop = AsyncTaskMethod(self.call_async, tasks)

    def start(self, args: Sequence[Any], named: Mapping[str, Any]) -> Started:
        """Begins it for nobody who waits, however long it takes."""
        if self.asynchronous:
            coroutine = self._run_async(*args, **named)
            begin = asyncio.run_coroutine_threadsafe
            future: Future[Any] = Context().run(begin, coroutine, self._loop)
            return Started(future, future.cancel)
        run = Threaded(lambda: self._run(*args, **named), Context())
        return Started(run.end, run.abort)

    def call(self, *args: Any, **named: Any) -> Any:
        """For a caller that waits in a thread."""
        if self._joined is not None:
            return result_within(self._joined.add(*args, **named), self._seconds)
        if not self.asynchronous:
            if self._is_stream:
                return self._pieces(args, named)
            return Threaded(lambda: self._run(*args, **named)).result(self._seconds)
        if self._is_stream:
            return self._pieces_of_async(args, named)
        return self._on_loop(within(self._seconds, self._run_async(*args, **named)))

    def call_async(self, *args: Any, **named: Any) -> Any:
        """For a caller on the event loop: a coroutine, or an asynchronous iterator."""
        if self._joined is not None:
            return within(self._seconds, asyncio.wrap_future(self._joined.add(*args, **named)))
        if self.asynchronous:
            if self._is_stream:
                return self._pieces_on_loop(args, named)
            return within(self._seconds, self._run_async(*args, **named))
        if self._is_stream:
            return self._pieces_for_async(args, named)
        return Threaded(lambda: self._run(*args, **named)).result_async(self._seconds)

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What becomes of it there, for a thread that waits; the work has its own limit."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return result_within(future, math.inf)

    def _run(self, *args: Any, **named: Any) -> Any:
        with self._turns.taken():
            return self._function(*args, **self._with_context(named))

    async def _run_async(self, *args: Any, **named: Any) -> Any:
        return await self._function(*args, **self._with_context(named))

    def _with_context(self, named: Mapping[str, Any]) -> dict[str, Any]:
        if self._context_name is None or self._context_name in named:
            return dict(named)
        return {**named, self._context_name: self._service.context}

    def _pieces(self, args: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Any]:
        opened = Threaded(lambda: self._open(args, named))
        first, pieces = opened.result(self._seconds)
        with closing(pieces):
            piece = first
            # Others have their turn while the caller uses a piece.
            while piece is not _END:
                yield piece
                piece = self._next(pieces)

    def _open(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, Iterator[Any]]:
        """The first piece, until which the service's timeout counts, and those that follow."""
        with self._turns.taken():
            pieces = self._function(*args, **self._with_context(named))
            return next(pieces, _END), pieces

    def _next(self, pieces: Iterator[Any]) -> Any:
        with self._turns.taken():
            return next(pieces, _END)

    async def _pieces_for_async(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> AsyncIterator[Any]:
        pieces = self._pieces(args, named)
        try:
            while (piece := await asyncio.to_thread(next, pieces, _END)) is not _END:
                yield piece
        finally:
            await asyncio.to_thread(getattr(pieces, "close", _nothing))

    async def _pieces_on_loop(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        async with aclosing(self._function(*args, **self._with_context(named))) as pieces:
            async with Limit(self._seconds):
                first = await anext(pieces, _END)
            if first is _END:
                return
            yield first
            async for piece in pieces:
                yield piece

    def _pieces_of_async(self, args: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Any]:
        pieces = self._pieces_on_loop(args, named)

        async def one() -> Any:
            return await anext(pieces, _END)

        async def leave() -> None:
            async with aclosing(pieces):
                pass

        try:
            while True:
                piece = self._on_loop(one())
                if piece is _END:
                    return
                yield piece
        finally:
            asyncio.run_coroutine_threadsafe(leave(), self._loop)


@dataclass(slots=True)
class _Waiting:
    """Rows of one caller that wait for the next call of the method."""

    value: Any
    rows: int
    end: Future[Any]


class _Joined:
    """The calls of a batchable method, one at a time."""

    def __init__(
        self, method: Any, run: Callable[..., Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._name: str = method.name
        self._most: int = method.max_batch_size
        self._dimension, self._result_dimension = method.batch_dim
        self._run = run
        self._loop = loop
        self._is_async = inspect.iscoroutinefunction(method.func)
        self._waiting: deque[_Waiting] = deque()
        self._lock = threading.Lock()
        self._busy = False

    def add(self, *args: Any, **named: Any) -> Future[Any]:
        """The rows of one call; the future has its part of the result."""
        values = [*args, *named.values()]
        if len(values) != 1:
            raise TypeError(f"{self._name} is batchable, and so takes exactly one argument")
        rows = internals.rows_of(values[0], self._dimension)
        waiting = _Waiting(values[0], rows, Future())
        with self._lock:
            self._waiting.append(waiting)
            begins, self._busy = not self._busy, True
        if begins and self._is_async:
            asyncio.run_coroutine_threadsafe(self._drain_async(), self._loop)
        elif begins:
            threading.Thread(target=self._drain, name=f"{self._name} batches", daemon=True).start()
        return waiting.end

    def _next(self) -> list[_Waiting]:
        """What goes into the next call: none where nobody waits."""
        with self._lock:
            part: list[_Waiting] = []
            rows = 0
            while self._waiting and (not part or rows + self._waiting[0].rows <= self._most):
                first = self._waiting.popleft()
                if first.end.set_running_or_notify_cancel():
                    part.append(first)
                    rows += first.rows
            self._busy = bool(part)
            return part

    def _drain(self) -> None:
        while part := self._next():
            for values, ends in self._attempts(part):
                with _Ends(ends):
                    results = [self._run(each) for each in self._parts(values)]
                    self._tell(results, values, ends)

    async def _drain_async(self) -> None:
        while part := self._next():
            for values, ends in self._attempts(part):
                with _Ends(ends):
                    results = [await self._run(each) for each in self._parts(values)]
                    self._tell(results, values, ends)

    def _attempts(self, part: list[_Waiting]) -> Iterator[tuple[list[_Waiting], _Attempt]]:
        """All together; then, where that fails, each caller alone."""
        attempt = _Attempt(part, is_last=len(part) == 1)
        yield part, attempt
        if attempt.failed:
            for each in part:
                yield [each], _Attempt([each], is_last=True)

    def _parts(self, waiting: list[_Waiting]) -> list[Any]:
        """The arguments of the calls: several where one caller brings more than a call takes."""
        joined, _ = internals.join([each.value for each in waiting], self._dimension)
        rows = sum(each.rows for each in waiting)
        if rows <= self._most:
            return [joined]
        return internals.split(joined, [*range(0, rows, self._most), rows], self._dimension)

    def _tell(self, results: list[Any], waiting: list[_Waiting], attempt: _Attempt) -> None:
        dimension = self._result_dimension
        result = results[0] if len(results) == 1 else internals.join(results, dimension)[0]
        rows = sum(each.rows for each in waiting)
        given = internals.rows_of(result, dimension)
        if given != rows:
            attempt.is_last = True
            raise output_invalid(self._name, f"it has {given} rows for a batch of {rows}")
        places = [0]
        for each in waiting:
            places.append(places[-1] + each.rows)
        for each, value in zip(waiting, internals.split(result, places, dimension), strict=True):
            each.end.set_result(value)


@dataclass(slots=True)
class _Attempt:
    """A call of the method for these callers; the last one tells them how it failed."""

    waiting: list[_Waiting]
    is_last: bool
    failed: bool = False


class _Ends:
    """Takes what an attempt raises."""

    def __init__(self, attempt: _Attempt) -> None:
        self._attempt = attempt

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        if error is None:
            return False
        if self._attempt.is_last or not isinstance(error, Exception):
            for each in self._attempt.waiting:
                if not each.end.done():
                    each.end.set_exception(error)
        else:
            self._attempt.failed = True
        return isinstance(error, Exception)


def _nothing() -> None:
    """There is nothing to close."""
