"""A method of a BentoML service, as the host executes it.

Arguments are read, the method is called and its result is written within one ``bentoml.Context``,
because temporary files live as long as that. Synchronous methods take turns: one limiter for all
of them, as in BentoML, whose services need not be safe for threads.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from starlette.responses import Response

from ..sdk.executable import Ends, IncomingCall, Json, Result, StreamResult, Tell
from ..sdk.responses import collected, is_streamed, tell
from . import internals
from .arguments import Arguments, ArgumentsReader
from .batches import Batch, Rows
from .failures import raised
from .manifest import Shape, endpoint_manifest
from .requests import CallRequest, call_scope
from .results import ResultWriter
from .turns import Turns

_END = object()


class BentoEndpoint:
    """One method."""

    def __init__(
        self,
        service: Any,
        attribute: str,
        *,
        config: Mapping[str, Any],
        turns: Turns,
        later: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        method = service.apis[attribute]
        shape = Shape(method)
        self._service = service
        self._attribute = attribute
        self._turns = turns
        self._later = later
        self.route = internals.route_of(service, method)
        self._is_task: bool = method.is_task
        self._name: str = method.name
        self._context_name: str | None = method.ctx_param
        self._is_stream = internals.yields(method)
        self._reader = ArgumentsReader(method, shape)
        self._writer = ResultWriter(method, shape)
        self.asynchronous = internals.is_asynchronous(method)
        self._rows = Rows(method) if method.batchable else None
        self._is_json = shape.pieces == "json"
        self.manifest: Mapping[str, Json] = endpoint_manifest(
            method,
            shape,
            config,
            asynchronous=self.asynchronous,
            route=self.route,
        )
        self._call: Any = None
        self.execute: Callable[[IncomingCall], Any] = self._kind_of_execution()

    def bind(self, instance: Any) -> None:
        """From now on, calls go to this instance."""
        self._call = getattr(instance, self._attribute)

    def execute_batch(self, calls: Sequence[IncomingCall], tell: Tell) -> Ends | Awaitable[Ends]:
        """One call of the method for all, or a few, where there are more rows than it takes."""
        return self._batch_async(calls, tell) if self.asynchronous else self._batch(calls, tell)

    def _kind_of_execution(self) -> Callable[[IncomingCall], Any]:
        if self._rows is not None:
            return self._alone_async if self.asynchronous else self._alone
        if self._is_stream:
            return self._open_async if self.asynchronous else self._open
        return self._run_async if self.asynchronous else self._run

    def _run(self, call: IncomingCall) -> Result:
        with _told(), self._turns.taken(), self._scope(call) as context:
            args, named = self._read(call, context)
            value = self._call(*args, **named)
            streamed = asyncio.run(collected(value, call)) if is_streamed(value) else None
            return self._write(value, call, context, streamed)

    async def _run_async(self, call: IncomingCall) -> Result:
        with _told(), self._scope(call) as context:
            args, named = self._read(call, context)
            value = await self._call(*args, **named)
            streamed = await collected(value, call) if is_streamed(value) else None
            return self._write(value, call, context, streamed)

    def _open(self, call: IncomingCall) -> Result:
        return StreamResult(self._pieces(call), self._is_json)

    def _pieces(self, call: IncomingCall) -> Iterator[str | bytes]:
        write = self._writer.piece_writer()
        with _told(), self._scope(call) as context:
            with self._turns.taken():
                args, named = self._read(call, context)
                pieces = iter(self._call(*args, **named))
            with _closed(pieces):
                # Other methods have their turn while the caller takes a piece.
                while (piece := self._next(pieces)) is not _END:
                    written = write(piece)
                    self._say(context, call)
                    if written:
                        yield written
            self._finish(context, call)

    def _next(self, pieces: Iterator[Any]) -> Any:
        with self._turns.taken():
            return next(pieces, _END)

    async def _open_async(self, call: IncomingCall) -> Result:
        return StreamResult(self._pieces_async(call), self._is_json)

    async def _pieces_async(self, call: IncomingCall) -> AsyncIterator[str | bytes]:
        write = self._writer.piece_writer()
        with _told(), self._scope(call) as context:
            args, named = self._read(call, context)
            pieces = self._call(*args, **named)
            pieces = await pieces if inspect.isawaitable(pieces) else pieces
            async with aclosing(_each(pieces)) as each:
                async for piece in each:
                    written = write(piece)
                    self._say(context, call)
                    if written:
                        yield written
            self._finish(context, call)

    def _alone(self, call: IncomingCall) -> Result:
        return _only(self._batch([call], _tell_nobody))

    async def _alone_async(self, call: IncomingCall) -> Result:
        return _only(await self._batch_async([call], _tell_nobody))

    def _batch(self, calls: Sequence[IncomingCall], tell: Tell) -> Ends:
        with self._turns.taken(), self._scope(calls[0]) as context:
            batch = self._gather(calls, context, tell)
            for value, named in batch.parts():
                with batch.failures(), _told():
                    batch.take(self._call(value, **named))
            return batch.results(self._writer.write)

    async def _batch_async(self, calls: Sequence[IncomingCall], tell: Tell) -> Ends:
        with self._scope(calls[0]) as context:
            batch = self._gather(calls, context, tell)
            for value, named in batch.parts():
                with batch.failures(), _told():
                    batch.take(await self._call(value, **named))
            return batch.results(self._writer.write)

    def _gather(self, calls: Sequence[IncomingCall], context: Any, tell: Tell) -> Batch:
        assert self._rows is not None, "the method takes no batches"
        batch = Batch(self._rows, calls, lambda call: self._read(call, context))
        for number, refusal in batch.failed.items():
            tell(number, refusal)
        return batch

    def _read(self, call: IncomingCall, context: Any) -> Arguments:
        args, named = self._reader.read(call)
        if self._context_name is not None:
            named[self._context_name] = context
        return args, named

    def _write(
        self, value: Any, call: IncomingCall, context: Any, streamed: Path | None = None
    ) -> Result:
        self._finish(context, call)
        if not isinstance(value, Response):
            return self._writer.write(value)
        tell(value, call)
        if value.background is not None:
            self._later(value.background())
        return self._writer.write_response(value, streamed)

    def _say(self, context: Any, call: IncomingCall) -> None:
        """Leaves what the method said of its response where the host finds it."""
        if self._context_name is not None and call.response is None:
            internals.tell_response(context.response, call)

    def _finish(self, context: Any, call: IncomingCall) -> None:
        self._say(context, call)
        if self._context_name is not None and context.response.background.tasks:
            self._later(context.response.background())

    def _scope(self, call: IncomingCall) -> Any:
        task_id = call.task_id if self._is_task else None
        return call_scope(self._service, CallRequest(call, self.route, task_id))


@contextmanager
def _closed(pieces: Any) -> Iterator[None]:
    """Closes a generator; other iterators have nothing to be closed."""
    try:
        yield
    finally:
        if hasattr(pieces, "close"):
            pieces.close()


async def _each(pieces: Any) -> AsyncGenerator[Any, None]:
    """The pieces of any iterator that a method on the event loop gave."""
    if isinstance(pieces, AsyncIterable):
        try:
            async for piece in pieces:
                yield piece
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()
        return
    steps = iter(pieces)
    with _closed(steps):
        while (piece := await asyncio.to_thread(next, steps, _END)) is not _END:
            yield piece


@contextmanager
def _told() -> Iterator[None]:
    """Gives BentoML's exceptions the code that they stand for."""
    try:
        yield
    except Exception as error:
        failure = raised(error)
        if failure is error:
            raise
        raise failure from error


def _tell_nobody(_number: int, _end: Result | Exception) -> None:
    """For one call, whose end is returned."""


def _only(ends: Ends) -> Result:
    (end,) = ends
    if isinstance(end, Exception):
        raise end
    return end
