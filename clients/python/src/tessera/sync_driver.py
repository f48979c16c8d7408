"""Performs the steps of the rules (see `wire`) with blocking HTTP, for programs with threads."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, TypeVar

import httpx

from .repeat import Policy
from .status import TaskStatus
from .transport import CHUNK_BYTES, Receiver, http_options, request_options
from .version import __version__
from .wire import Answer, Give, Pause, Read, Report, Request, Restart, Send, Steps

T = TypeVar("T")

OnProgress = Callable[[TaskStatus], object]

OnRestart = Callable[[int], object]


class SyncDriver:
    """One HTTP client with its token, and the policy of its requests."""

    def __init__(
        self,
        policy: Policy,
        token: str | None,
        *,
        headers: Mapping[str, str],
        verify: ssl.SSLContext | bool,
    ) -> None:
        self._http = httpx.Client(**http_options(policy.url, headers, __version__), verify=verify)
        self.policy = policy
        self.token = token

    def close(self) -> None:
        self._http.close()

    def run(self, steps: Steps[T], on_progress: OnProgress | None = None) -> T:
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
                    outcome = self._send(step.request)
                except httpx.RequestError as err:
                    failure = err
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            elif isinstance(step, Report) and on_progress is not None:
                on_progress(step.status)

    def stream(
        self, steps: Steps[None], on_restart: OnRestart | None
    ) -> Generator[Any, None, None]:
        """Performs the steps of a stream; gives its pieces."""
        opened: httpx.Response | None = None
        chunks: Iterator[bytes] = iter(())
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
                            opened.close()
                        outcome = self._send(step.request)
                        opened = outcome.opened
                        chunks = iter(()) if opened is None else opened.iter_bytes()
                    elif isinstance(step, Read):
                        outcome = next(chunks, b"")
                except httpx.RequestError as err:
                    failure = err
                if isinstance(step, Give):
                    yield step.piece
                elif isinstance(step, Restart) and on_restart is not None:
                    on_restart(step.attempt)
                elif isinstance(step, Pause):
                    time.sleep(step.seconds)
        finally:
            if opened is not None:
                opened.close()

    def _send(self, request: Request) -> Answer:
        built = self._http.build_request(
            **request_options(request, self.policy, self.token),
            content=None if request.body is None else _Chunks(request),
        )
        response = self._http.send(built, stream=True)
        if request.streams and response.status_code == 200:
            return Answer(response.status_code, response.headers, opened=response)
        try:
            with Receiver(request, response) as receiver:
                for chunk in response.iter_bytes(CHUNK_BYTES):
                    receiver.take(chunk)
                return receiver.finish()
        finally:
            response.close()


class _Chunks:
    def __init__(self, request: Request) -> None:
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        assert self._request.body is not None
        return self._request.body.chunks()
