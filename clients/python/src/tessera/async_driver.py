"""Performs the steps of the rules (see `wire`) on an event loop of asyncio or trio."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

import anyio
import httpx

from .repeat import Policy
from .status import TaskStatus
from .transport import CHUNK_BYTES, Receiver, http_options, request_options
from .version import __version__
from .wire import Answer, Give, Pause, Read, Report, Request, Restart, Send, Steps

T = TypeVar("T")

OnProgress = Callable[[TaskStatus], Awaitable[object] | object]

OnRestart = Callable[[int], Awaitable[object] | object]


class AsyncDriver:
    """One HTTP client with its token, and the policy of its requests."""

    def __init__(
        self,
        policy: Policy,
        token: str | None,
        *,
        headers: Mapping[str, str],
        verify: ssl.SSLContext | bool,
    ) -> None:
        options = http_options(policy.url, headers, __version__)
        self._http = httpx.AsyncClient(**options, verify=verify)
        self.policy = policy
        self.token = token

    async def close(self) -> None:
        await self._http.aclose()

    async def run(self, steps: Steps[T], on_progress: OnProgress | None = None) -> T:
        outcome: Answer | None = None
        failure: httpx.RequestError | None = None
        while True:
            try:
                step = steps.throw(failure) if failure else steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome, failure = None, None
            if isinstance(step, Send):
                try:
                    outcome = await self._send(step.request)
                except httpx.RequestError as err:
                    failure = err
            elif isinstance(step, Pause):
                await anyio.sleep(step.seconds)
            elif isinstance(step, Report) and on_progress is not None:
                said = on_progress(step.status)
                if isinstance(said, Awaitable):
                    await said

    async def stream(
        self, steps: Steps[None], on_restart: OnRestart | None
    ) -> AsyncGenerator[Any, None]:
        """Performs the steps of a stream; gives its pieces."""
        opened: httpx.Response | None = None
        chunks: AsyncIterator[bytes] | None = None
        outcome: Any = None
        failure: httpx.RequestError | None = None
        try:
            while True:
                try:
                    step = steps.throw(failure) if failure else steps.send(outcome)
                except StopIteration:
                    return
                outcome, failure = None, None
                try:
                    if isinstance(step, Send):
                        if opened is not None:
                            await opened.aclose()
                        outcome = await self._send(step.request)
                        opened = outcome.opened
                        chunks = None if opened is None else opened.aiter_bytes()
                    elif isinstance(step, Read):
                        outcome = b"" if chunks is None else await anext(chunks, b"")
                except httpx.RequestError as err:
                    failure = err
                if isinstance(step, Give):
                    yield step.piece
                elif isinstance(step, Restart) and on_restart is not None:
                    said = on_restart(step.attempt)
                    if isinstance(said, Awaitable):
                        await said
                elif isinstance(step, Pause):
                    await anyio.sleep(step.seconds)
        finally:
            if opened is not None:
                with anyio.CancelScope(shield=True):
                    await opened.aclose()

    async def _send(self, request: Request) -> Answer:
        built = self._http.build_request(
            **request_options(request, self.policy, self.token),
            content=None if request.body is None else _Chunks(request),
        )
        response = await self._http.send(built, stream=True)
        if request.streams and response.status_code == 200:
            return Answer(response.status_code, response.headers, opened=response)
        try:
            with Receiver(request, response) as receiver:
                async for chunk in response.aiter_bytes(CHUNK_BYTES):
                    if receiver.to_file:
                        await anyio.to_thread.run_sync(receiver.take, chunk)
                    else:
                        receiver.take(chunk)
                return receiver.finish()
        finally:
            await response.aclose()


class _Chunks:
    """Chunks of files, read by another thread so that slow disks do not block the event loop."""

    def __init__(self, request: Request) -> None:
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert self._request.body is not None
        chunks = self._request.body.chunks()
        while (chunk := await anyio.to_thread.run_sync(_next, chunks)) is not None:
            yield chunk


def _next(chunks: Iterator[bytes]) -> bytes | None:
    return next(chunks, None)
