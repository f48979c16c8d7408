"""Batches: the rows of several calls as one argument, and its result cut up again.

``max_batch_size`` counts rows, not calls: a call may bring many, and one with more than that is
given to the method in parts. When the method fails, each call is tried once alone, so that one
with bad rows fails no other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..sdk.executable import CallError, IncomingCall, Result
from . import internals
from .arguments import Arguments
from .failures import output_invalid


class Rows:
    """How the rows of one method are joined and split."""

    def __init__(self, method: Any) -> None:
        self.endpoint: str = method.name
        self.most: int = method.max_batch_size
        self.dimension, self.result_dimension = method.batch_dim
        self.context_name: str | None = method.ctx_param

    def value_of(self, arguments: Arguments) -> tuple[Any, dict[str, Any]]:
        """The one argument that has the rows, and the context."""
        args, named = arguments
        rest = {name: value for name, value in named.items() if name == self.context_name}
        values = [*args, *(value for name, value in named.items() if name not in rest)]
        if len(values) != 1:
            raise TypeError(f"{self.endpoint} is batchable, and so takes exactly one argument")
        return values[0], rest


@dataclass(slots=True)
class _Item:
    """Rows of one call that go into one call of the method."""

    number: int
    value: Any
    rows: int


class Batch:
    """Calls that are executed together."""

    def __init__(
        self,
        rows: Rows,
        calls: Sequence[IncomingCall],
        read: Callable[[IncomingCall], Arguments],
    ) -> None:
        self._rows = rows
        self._calls = calls
        self.failed: dict[int, Exception] = {}
        """By the number of the call: at first those whose arguments are wrong."""
        self._values: dict[int, list[Any]] = {}
        self._named: dict[str, Any] = {}
        items: list[_Item] = []
        for number, call in enumerate(calls):
            try:
                value, self._named = rows.value_of(read(call))
                items += self._items_of(number, value)
                self._values[number] = []
            except Exception as error:  # Arguments that are wrong fail their own call.
                self.failed[number] = error
        self._parts = deque(self._grouped(items))
        self._part: list[_Item] = []
        self._places: Any = None

    def parts(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The arguments of each call of the method. Its result goes to ``take``."""
        while self._parts:
            self._part = [
                each for each in self._parts.popleft() if not self._calls[each.number].aborted
            ]
            if not self._part:
                continue
            joined = None
            with self.failures():
                values = [each.value for each in self._part]
                joined, self._places = internals.join(values, self._rows.dimension)
            if joined is not None:
                yield joined, self._named

    def take(self, result: Any) -> None:
        """Takes the result of the last part."""
        dimension = self._rows.result_dimension
        size = sum(each.rows for each in self._part)
        given = internals.rows_of(result, dimension)
        if given != size:
            raise output_invalid(self._rows.endpoint, f"it has {given} rows for a batch of {size}")
        split = internals.split(result, self._places, dimension)
        for item, value in zip(self._part, split, strict=True):
            self._values[item.number].append(value)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Takes an exception of the last part: its calls are tried alone, or have failed."""
        try:
            yield
        except Exception as error:
            is_length = isinstance(error, CallError) and error.reason == "OUTPUT_INVALID"
            if len(self._part) > 1 and not is_length:
                self._parts.extendleft([item] for item in reversed(self._part))
                return
            for item in self._part:
                self.failed[item.number] = error

    def results(self, write: Callable[[Any], Result]) -> list[Result | Exception]:
        """The end of each call, in their order."""
        return [self._end(number, write) for number in range(len(self._calls))]

    def _end(self, number: int, write: Callable[[Any], Result]) -> Result | Exception:
        if number in self.failed:
            return self.failed[number]
        values = self._values[number]
        if not values:
            return CallError("the call was aborted", code="canceled")
        try:
            if len(values) == 1:
                return write(values[0])
            return write(internals.join(values, self._rows.result_dimension)[0])
        except Exception as error:  # One result that cannot be written fails its call alone.
            return error

    def _items_of(self, number: int, value: Any) -> list[_Item]:
        rows, most = self._rows, self._rows.most
        count = internals.rows_of(value, rows.dimension)
        if count <= most:
            return [_Item(number, value, count)]
        places = [*range(0, count, most), count]
        parts = internals.split(value, places, rows.dimension)
        return [
            _Item(number, part, end - start)
            for part, start, end in zip(parts, places, places[1:], strict=False)
        ]

    def _grouped(self, items: list[_Item]) -> Iterator[list[_Item]]:
        part: list[_Item] = []
        size = 0
        for item in items:
            if part and size + item.rows > self._rows.most:
                yield part
                part, size = [], 0
            part.append(item)
            size += item.rows
        if part:
            yield part
