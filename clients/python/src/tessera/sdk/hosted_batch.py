"""Endpoints whose function takes several calls at once."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from pydantic_core import PydanticUndefined

from .adapters import adapter_of
from .arguments import Arguments, arguments_of
from .batches import Batch, BatchContext, is_model, item_hint, result_hint
from .executable import CallError, Ends, IncomingCall, Result, ServiceError, Tell
from .parameters import parameters_of
from .returned import Returned


class HostedBatch:
    """Takes lists of arguments, and returns a list with the result of each call.

    The arguments of each call are checked alone, before: a bad one fails its own call only.
    """

    def __init__(
        self, function: Callable[..., Any], batch: Batch, manifest: dict[str, Any], place: str
    ) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ServiceError(f"{place}: a function with batch returns a list; it cannot yield")
        if not isinstance(batch, Batch):
            example = "Batch(max_size=32)"
            raise ServiceError(f"{place}: batch must be a Batch, such as {example}, not {batch!r}")
        name = manifest["name"]
        parameters = parameters_of(function, place)
        self._endpoint = name
        self._name = function.__name__
        self._context_name = parameters.context_name
        self._names = list(parameters.arguments)
        if not self._names and self._context_name is None:
            raise ServiceError(
                f"{place}: with batch the function takes lists, and this takes none; add a "
                "parameter such as texts: list[str], or remove batch"
            )
        items = {
            each: item_hint(hint, f"{place}, parameter {each}")
            for each, (hint, _) in parameters.arguments.items()
        }
        for each, (_, default) in parameters.arguments.items():
            if default is not PydanticUndefined:
                raise ServiceError(f"{place}, parameter {each}: with batch it has no default")
        only = next(iter(items.values())) if len(items) == 1 else None
        self._is_model = only is not None and is_model(only)
        self._arguments = (
            Arguments(adapter_of(only, place), endpoint=name, place=place)
            if self._is_model
            else arguments_of(
                {each: (hint, PydanticUndefined) for each, hint in items.items()},
                endpoint=name,
                place=place,
            )
        )
        hint = result_hint(parameters.returns, place)
        self._returned = Returned(hint, endpoint=name, place=place)
        self._splits = batch.on_error == "split"
        self.asynchronous = inspect.iscoroutinefunction(function)
        self.manifest = {
            **manifest,
            "input": self._arguments.input,
            "check": self._arguments.check,
            "json": "python",
            "files": self._arguments.files,
            "output": self._returned.output,
            "batch": batch.manifest(place),
        }
        if self._arguments.arrays:
            self.manifest["arrays"] = self._arguments.arrays
        if self._returned.output_file is not None:
            self.manifest["outputFile"] = self._returned.output_file
        if self._returned.quoted:
            self.manifest["quoted"] = True
        self._method: Callable[..., Any] = function
        self.execute: Callable[[IncomingCall], Result | Awaitable[Result]] = (
            self._execute_on_loop if self.asynchronous else self._execute
        )
        self.execute_batch: Callable[[Sequence[IncomingCall], Tell], Ends | Awaitable[Ends]] = (
            self._execute_all_on_loop if self.asynchronous else self._execute_all
        )

    def bind(self, instance: Any) -> None:
        """From now on, calls go to this instance."""
        self._method = getattr(instance, self._name)

    def _execute(self, call: IncomingCall) -> Result:
        return _only(self._execute_all([call], _tell_nobody))

    async def _execute_on_loop(self, call: IncomingCall) -> Result:
        return _only(await self._execute_all_on_loop([call], _tell_nobody))

    def _execute_all(self, calls: Sequence[IncomingCall], tell: Tell) -> Ends:
        steps = self._steps(calls, tell)
        step: Callable[[], dict[str, Any]] = partial(next, steps)
        while True:
            try:
                arguments = step()
            except StopIteration as done:
                return cast("Ends", done.value)
            try:
                step = partial(steps.send, self._method(**arguments))
            except Exception as error:
                step = partial(steps.throw, error)

    async def _execute_all_on_loop(self, calls: Sequence[IncomingCall], tell: Tell) -> Ends:
        steps = self._steps(calls, tell)
        step: Callable[[], dict[str, Any]] = partial(next, steps)
        while True:
            try:
                arguments = step()
            except StopIteration as done:
                return cast("Ends", done.value)
            try:
                step = partial(steps.send, await self._method(**arguments))
            except Exception as error:
                step = partial(steps.throw, error)

    def _steps(
        self, calls: Sequence[IncomingCall], tell: Tell
    ) -> Generator[dict[str, Any], Any, Ends]:
        """Yields what the function is called with, takes what it returns, and returns the ends."""
        ends: dict[int, Result | Exception] = {}
        values: dict[int, Any] = {}
        for index, call in enumerate(calls):
            try:
                values[index] = self._arguments.read(call)
            except CallError as refused:
                ends[index] = refused
                tell(index, refused)
        whole = list(values)
        split: list[int] = []
        if whole:
            try:
                returned = yield self._called_with(whole, calls, values)
                self._take(returned, {index: calls[index] for index in whole}, ends)
            except Exception as error:
                if self._splits and len(whole) > 1 and not isinstance(error, _WrongLength):
                    split = whole
                ends.update(dict.fromkeys(whole, self._failed(error, len(whole))))
        for index in split:
            if calls[index].aborted is not None:
                continue
            try:
                returned = yield self._called_with([index], calls, values)
                self._take(returned, {index: calls[index]}, ends)
            except Exception as error:
                ends[index] = error
            tell(index, ends[index])
        return [ends[index] for index in range(len(calls))]

    def _called_with(
        self, indexes: Sequence[int], calls: Sequence[IncomingCall], values: dict[int, Any]
    ) -> dict[str, Any]:
        if self._is_model:
            arguments: dict[str, Any] = {self._names[0]: [values[index] for index in indexes]}
        else:
            arguments = {name: [values[index][name] for index in indexes] for name in self._names}
        if self._context_name is not None:
            arguments[self._context_name] = BatchContext([calls[index] for index in indexes])
        return arguments

    def _take(self, results: Any, calls: Mapping[int, IncomingCall], ends: dict[int, Any]) -> None:
        if not isinstance(results, Sequence) or len(results) != len(calls):
            count = len(results) if isinstance(results, Sequence) else type(results).__name__
            raise _WrongLength(
                f"{self._endpoint} returned {count} results for a batch of {len(calls)}: "
                "return a list with one for each, in their order; one may be an exception"
            )
        for (index, call), result in zip(calls.items(), results, strict=True):
            try:
                ends[index] = (
                    result if isinstance(result, Exception) else self._returned.end(result, call)
                )
            except CallError as refused:
                ends[index] = refused

    def _failed(self, error: Exception, size: int) -> Exception:
        if isinstance(error, CallError) or self._splits:
            return error
        failed = CallError(
            f"the function of {self._endpoint} failed for a batch of {size}: {error}",
            reason="BATCH_FAILED",
        )
        failed.__cause__ = error
        return failed


class _WrongLength(CallError):
    """Nobody knows which result belongs to which call."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="OUTPUT_INVALID")


def _tell_nobody(_index: int, _end: Result | Exception) -> None:
    """For one call, whose end is returned."""


def _only(ends: Ends) -> Result:
    (end,) = ends
    if isinstance(end, Exception):
        raise end
    return end
