"""The synchronous client, for programs with threads."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeVar

import httpx

from . import calls, session, streams, tasks
from .calls import Given, Options
from .environment import resolve
from .repeat import Policy
from .settings import options
from .status import TaskStatus
from .tasks import TaskRef
from .transport import CHUNK_BYTES, Receiver, http_options, request_options
from .version import __version__
from .wire import Answer, Give, Pause, Read, Report, Request, Restart, Send, Steps

T = TypeVar("T")

OnProgress = Callable[[TaskStatus], object]

OnRestart = Callable[[int], object]


class SyncHTTPClient:
    """Calls one deployment; its endpoints are attributes.

    `url`: the deployment's own, or with `deployment` the platform's; without it,
    `SERVICE_CLOUD_API_ENDPOINT` is the platform.
    `token`: without it, `SERVICE_CLOUD_API_KEY`, which is sent only to that platform and the
    hosts below it; an empty one sends none.
    `timeout`: how long a response may take, in seconds. Waiting for tasks has no limit.
    `retries`: maximum repetitions of a request, where that is safe (see `repeat`).
    `deployment`: `organization/name`, if `url` is the platform's and not the deployment's own.
    `verify`: as in httpx, for servers with a certificate of a private authority.

    Can be used by several threads at once.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        deployment: str | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        url, token = resolve(url, token, deployment)
        headers = {} if deployment is None else {"tessera-deployment": deployment}
        self._http = httpx.Client(**http_options(url, headers, __version__), verify=verify)
        self._session = session.Session(Policy(url, timeout, retries))
        self.token = token
        """May be set to another at any time."""

    def __getattr__(self, name: str) -> SyncEndpoint:
        if name.startswith("_"):
            raise AttributeError(name)
        return SyncEndpoint(self, name)

    def endpoint(self, name: str) -> SyncEndpoint:
        """Returns an endpoint by name, for names that cannot be attributes."""
        return SyncEndpoint(self, name)

    def endpoints(self) -> list[str]:
        """Returns the names of the deployment's endpoints."""
        return list(self._run(session.load_schema(self._session)).endpoints)

    def task(self, endpoint: str, task_id: str) -> SyncTask:
        """Returns a handle on a task submitted earlier or by another program. Sends no request."""
        return SyncTask(self, TaskRef(endpoint, task_id))

    def wait_ready(self, timeout: float = 60) -> None:
        """Waits until the deployment accepts calls; raises `NotReady` after `timeout` seconds."""
        self._run(session.wait_ready(self._session, timeout))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> SyncHTTPClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[T], on_progress: OnProgress | None = None) -> T:
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

    def _stream(self, steps: Steps[None], on_restart: OnRestart | None) -> Iterator[Any]:
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
            **request_options(request, self._session.policy, self.token),
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


class SyncEndpoint:
    """One endpoint. Arguments are passed by name, or in the order of its schema."""

    def __init__(self, client: SyncHTTPClient, name: str, options: Options | None = None) -> None:
        self._client = client
        self._options = options or Options()
        self.name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Calls the endpoint and returns its result. A task is submitted and waited for."""
        client = self._client
        return client._run(calls.call(client._session, self.name, Given(args, named)))

    def stream(self, *args: Any, **named: Any) -> Iterator[Any]:
        """Calls an endpoint that streams, and yields the pieces of its result as it makes them:
        texts, bytes or JSON values. Errors may come after some pieces. The function makes no
        more than is read; closing the generator, or leaving the loop, ends the call."""
        client = self._client
        steps = calls.stream(client._session, self.name, Given(args, named))
        pieces = client._run(steps)
        with closing(pieces.response):
            try:
                for chunk in pieces.response.iter_bytes():
                    yield from pieces.feed(chunk)
            except httpx.RequestError as err:
                raise pieces.broken(err) from err
            if not pieces.ended:
                raise pieces.broken()

    def submit(self, *args: Any, **named: Any) -> SyncTask:
        """Submits a task. Repeated when the connection breaks, and stored at most once."""
        client = self._client
        given = Given(args, named)
        steps = calls.submit(client._session, self.name, given, self._options)
        return SyncTask(client, client._run(steps))

    def with_options(self, **given: Any) -> SyncEndpoint:
        """The endpoint with submit options: `idempotency_key`, `priority`, `run_at` or `delay`,
        `start_by` or `start_within`. Spans are seconds or timedeltas."""
        return SyncEndpoint(self._client, self.name, options(**given))

    def __repr__(self) -> str:
        return f"<endpoint {self.name}>"


class SyncTask:
    """A submitted task. It runs whether or not a program waits for it."""

    def __init__(self, client: SyncHTTPClient, ref: TaskRef) -> None:
        self._client = client
        self._ref = ref

    @property
    def id(self) -> str:
        return self._ref.id

    @property
    def endpoint(self) -> str:
        return self._ref.endpoint

    def get_status(self) -> TaskStatus:
        client = self._client
        return client._run(tasks.get_status(client._session, self._ref))

    def get(self) -> Any:
        """Returns the result; raises `NotFinished`, `TaskFailed` or `TaskCancelled`."""
        client = self._client
        return client._run(tasks.get(client._session, self._ref))

    def wait(self, timeout: float | None = None, on_progress: OnProgress | None = None) -> Any:
        """Waits for the end, then works like `get`; raises `TimedOut` after `timeout` seconds.

        `on_progress` is called with the status, at once and at every change.
        """
        client = self._client
        reports = on_progress is not None
        steps = tasks.wait(client._session, self._ref, timeout_s=timeout, reports=reports)
        return client._run(steps, on_progress)

    def stream(self, on_restart: OnRestart | None = None) -> Iterator[Any]:
        """Yields the pieces of a streamed result: those that the task has given, then new ones
        as they come, until it has ended. Leaving the iteration ends nothing.

        Resumes by itself when the connection breaks. `on_restart` is called with the attempt
        when the task begins anew and the pieces so far are void; without it, `TaskRestarted` is
        raised. Raises `TaskFailed` or `TaskCancelled` after the pieces that there were.
        """
        client = self._client
        tells = on_restart is not None
        steps = streams.stream(client._session, self._ref, tells_restarts=tells)
        return client._stream(steps, on_restart)

    def cancel(self, abort: bool = False) -> None:
        """Cancels the task if it is queued; with `abort`, also if it is running."""
        client = self._client
        client._run(tasks.cancel(client._session, self._ref, abort=abort))

    def retry(self, idempotency_key: str | None = None) -> SyncTask:
        """Submits a new task with the same arguments. Stored at most once, like `submit`."""
        client = self._client
        steps = tasks.retry(client._session, self._ref, idempotency_key)
        return SyncTask(client, client._run(steps))

    def __repr__(self) -> str:
        return f"<task {self.id} of {self.endpoint}>"
