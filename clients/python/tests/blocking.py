"""The async client without `await`, so that every test runs with both clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import Any

from anyio.from_thread import BlockingPortal

from tessera import AsyncEndpoint, AsyncHTTPClient, AsyncTask


class Blocking:
    """An object of the async client whose methods wait for their outcome."""

    def __init__(self, target: Any, portal: BlockingPortal) -> None:
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_portal", portal)

    def __getattr__(self, name: str) -> Any:
        return self._wrapped(getattr(self._target, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._wrapped(self._portal.call(partial(self._target, *args, **named)))

    def __enter__(self) -> Blocking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wrapped(self, value: Any) -> Any:
        if isinstance(value, AsyncGenerator):
            return self._iterated(value)
        ours = isinstance(value, (AsyncHTTPClient, AsyncEndpoint, AsyncTask))
        return Blocking(value, self._portal) if ours or hasattr(value, "__func__") else value

    def _iterated(self, values: AsyncGenerator[Any, None]) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._portal.call(values.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._portal.call(values.aclose)
