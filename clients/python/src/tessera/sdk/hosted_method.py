"""Endpoints whose function takes one call, and returns its result or yields the pieces of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from typing import Any, get_args, get_origin

from .arguments import arguments_of
from .context import Context
from .executable import Ends, IncomingCall, Result, ServiceError, StreamResult
from .parameters import parameters_of
from .responses import collected, is_streamed
from .returned import Returned

_ITERATORS = (Iterator, Iterable, Generator)
_ASYNC_ITERATORS = (AsyncIterator, AsyncIterable, AsyncGenerator)


class HostedMethod:
    """An endpoint whose function returns the result."""

    def __init__(self, function: Callable[..., Any], manifest: dict[str, Any], place: str) -> None:
        name = manifest["name"]
        self._place = place
        parameters = parameters_of(function, place)
        self._name = function.__name__
        self._context_name = parameters.context_name
        self._arguments = arguments_of(parameters.arguments, endpoint=name, place=place)
        self.asynchronous = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(
            function
        )
        hint = self.result_hint(parameters.returns)
        self._returned = Returned(hint, endpoint=name, place=place)
        self.manifest = {
            **manifest,
            "input": self._arguments.input,
            "check": self._arguments.check,
            "json": "python",
            "files": self._arguments.files,
            "output": self._returned.output,
        }
        if self._arguments.arrays:
            self.manifest["arrays"] = self._arguments.arrays
        if self._returned.output_file is not None:
            self.manifest["outputFile"] = self._returned.output_file
        if self._returned.quoted:
            self.manifest["quoted"] = True
        self._method: Callable[..., Any] = function
        # Chosen once, so that no call has to ask of which kind the function is.
        self.execute: Callable[[IncomingCall], Result | Awaitable[Result]] = (
            self._execute_on_loop if self.asynchronous else self._execute
        )

    def result_hint(self, returns: Any) -> Any:
        """The type that is described as the result."""
        return returns

    def bind(self, instance: Any) -> None:
        """From now on, calls go to this instance."""
        self._method = getattr(instance, self._name)

    def execute_batch(self, calls: Any, tell: Any) -> Ends:
        raise NotImplementedError(f"{self._name} takes no batches")

    def _execute(self, call: IncomingCall) -> Result:
        returned = self._method(**self._read(call))
        streamed = asyncio.run(collected(returned, call)) if is_streamed(returned) else None
        return self._returned.end(returned, call, streamed)

    async def _execute_on_loop(self, call: IncomingCall) -> Result:
        returned = await self._method(**self._read(call))
        streamed = await collected(returned, call) if is_streamed(returned) else None
        return self._returned.end(returned, call, streamed)

    def _read(self, call: IncomingCall) -> dict[str, Any]:
        given: dict[str, Any] = self._arguments.read(call)
        if self._context_name is not None:
            given[self._context_name] = Context(call)
        return given


class HostedStream(HostedMethod):
    """An endpoint whose function yields the pieces of the result."""

    def __init__(self, function: Callable[..., Any], manifest: dict[str, Any], place: str) -> None:
        super().__init__(function, manifest, place)
        pieces = "json"
        if self._returned.output_file is not None:
            pieces = "bytes"
        elif self._returned.is_text:
            pieces = "text"
        self.manifest["stream"] = {"pieces": pieces}
        self._is_json = pieces == "json"

    def result_hint(self, returns: Any) -> Any:
        """The type of a piece: ``T`` of ``Iterator[T]`` or ``AsyncIterator[T]``."""
        kinds = _ASYNC_ITERATORS if self.asynchronous else _ITERATORS
        if returns is not Any and (get_origin(returns) or returns) not in kinds:
            name = "AsyncIterator" if self.asynchronous else "Iterator"
            said = getattr(returns, "__name__", str(returns))
            raise ServiceError(
                f"{self._place}: it yields, so its result is an iterator of pieces; "
                f"write -> {name}[{said}], not -> {said}"
            )
        arguments = get_args(returns)
        return arguments[0] if arguments else Any

    def _execute(self, call: IncomingCall) -> Result:
        return StreamResult(self._pieces(self._method(**self._read(call))), self._is_json)

    async def _execute_on_loop(self, call: IncomingCall) -> Result:
        made = self._method(**self._read(call))
        return StreamResult(self._async_pieces(made), self._is_json)

    def _pieces(self, made: Iterator[Any]) -> Iterator[str | bytes]:
        write = self._returned.write_piece
        try:
            for piece in made:
                yield write(piece)
        finally:
            close = getattr(made, "close", None)
            if close is not None:
                close()

    async def _async_pieces(self, made: AsyncIterator[Any]) -> AsyncIterator[str | bytes]:
        write = self._returned.write_piece
        try:
            async for piece in made:
                yield write(piece)
        finally:
            close = getattr(made, "aclose", None)
            if close is not None:
                await close()
