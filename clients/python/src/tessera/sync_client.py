"""The synchronous client, for programs with threads."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any, Generic

import httpx

from . import calls, session, streams, tasks
from .calls import Given, Options
from .environment import resolve
from .generics import P, R
from .repeat import Policy
from .settings import KEPT, Kept, Seconds, options, task_change
from .status import TaskStatus
from .sync_driver import OnProgress, OnRestart, SyncDriver
from .task_events import TaskEvent
from .tasks import Reading, Replay, TaskRef


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
        policy = Policy(url, timeout, retries)
        self._driver = SyncDriver(policy, token, headers=headers, verify=verify)
        self._session = session.Session(policy, deployment)

    @property
    def token(self) -> str | None:
        """The token that is sent; may be set to another at any time."""
        return self._driver.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._driver.token = token

    def __getattr__(self, name: str) -> SyncEndpoint:
        if name.startswith("_"):
            raise AttributeError(name)
        return SyncEndpoint(self, name)

    def endpoint(self, name: str) -> SyncEndpoint:
        """Returns an endpoint by name, for names that cannot be attributes."""
        return SyncEndpoint(self, name)

    def endpoints(self) -> list[str]:
        """Returns the names of the deployment's endpoints."""
        return list(self._driver.run(session.load_schema(self._session)).endpoints)

    def task(self, endpoint: str, task_id: str) -> SyncTask:
        """Returns a handle on a task submitted earlier or by another program. Sends no request."""
        return SyncTask(self, TaskRef(endpoint, task_id))

    def wait_ready(self, timeout: float = 60) -> None:
        """Waits until the deployment accepts calls; raises `NotReady` after `timeout` seconds."""
        self._driver.run(session.wait_ready(self._session, timeout))

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> SyncHTTPClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncEndpoint:
    """One endpoint. Arguments are passed by name, or in the order of its schema."""

    def __init__(self, client: SyncHTTPClient, name: str, options: Options | None = None) -> None:
        self._client = client
        self._options = options or Options()
        self.name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Calls the endpoint and returns its result. A task is submitted and waited for."""
        client = self._client
        return client._driver.run(calls.call(client._session, self.name, Given(args, named)))

    def stream(self, *args: Any, **named: Any) -> Generator[Any, None, None]:
        """Calls an endpoint that streams, and yields the pieces of its result as it makes them:
        texts, bytes or JSON values. Errors may come after some pieces. The function makes no
        more than is read; closing the generator, or leaving the loop, ends the call."""
        client = self._client
        steps = calls.stream(client._session, self.name, Given(args, named))
        pieces = client._driver.run(steps)
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
        return SyncTask(client, client._driver.run(steps))

    def task(self, task_id: str) -> SyncTask:
        """Returns a handle on a task of this endpoint. Sends no request."""
        return SyncTask(self._client, TaskRef(self.name, task_id))

    def with_options(self, **given: Any) -> SyncEndpoint:
        """The endpoint with submit options: `idempotency_key`, `replay`, `priority`, `run_at` or
        `delay`, `start_by` or `start_within`, `retention`, `key`, `tags`. Spans are seconds or
        timedeltas."""
        return SyncEndpoint(self._client, self.name, options(**given))

    def __repr__(self) -> str:
        return f"<endpoint {self.name}>"


class SyncTask(Generic[R, P]):
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
        return client._driver.run(tasks.get_status(client._session, self._ref))

    def get(self) -> R:
        """Returns the result; raises `NotFinished`, `TaskFailed` or `TaskCancelled`."""
        client = self._client
        result: R = client._driver.run(tasks.get(client._session, self._ref))
        return result

    def wait(self, timeout: float | None = None, on_progress: OnProgress | None = None) -> R:
        """Waits for the end, then works like `get`; raises `TimedOut` after `timeout` seconds.

        `on_progress` is called with the status, at once and at every change.
        """
        client = self._client
        reports = on_progress is not None
        steps = tasks.wait(client._session, self._ref, timeout_s=timeout, reports=reports)
        result: R = client._driver.run(steps, on_progress)
        return result

    def stream(self, on_restart: OnRestart | None = None) -> Generator[P, None, None]:
        """Yields the pieces of a streamed result: those that the task has given, then new ones
        as they come, until it has ended. Leaving the iteration ends nothing.

        Resumes by itself when the connection breaks. `on_restart` is called with the attempt
        when the task begins anew and the pieces so far are void; without it, `TaskRestarted` is
        raised. Raises `TaskFailed` or `TaskCancelled` after the pieces that there were.
        """
        client = self._client
        tells = on_restart is not None
        steps = streams.stream(client._session, self._ref, tells_restarts=tells)
        return client._driver.stream(steps, on_restart)

    def watch(self, after: int = 0) -> Generator[TaskEvent, None, None]:
        """Yields the log of the task (states, progress and lines) from its beginning, or from
        behind the entry with the sequence number `after`, then new entries as they come, until
        the task has ended.

        Resumes by itself when the connection breaks, and loses and repeats nothing. Leaving the
        iteration ends nothing.
        """
        client = self._client
        return client._driver.stream(streams.watch(client._session, self._ref, after=after), None)

    def access_url(self, of: Reading) -> str:
        """Returns a URL that opens this one task, for reading, for 15 minutes, where no token can
        be sent, such as by the `EventSource` of a browser. Whoever has it may read the task; it
        ends with the client's token."""
        client = self._client
        return client._driver.run(tasks.access_url(client._session, self._ref, of))

    def cancel(self, abort: bool = False) -> None:
        """Cancels the task if it is queued; with `abort`, also if it is running."""
        client = self._client
        client._driver.run(tasks.cancel(client._session, self._ref, abort=abort))

    def update(
        self,
        *,
        priority: int | None = None,
        run_at: datetime | Kept | None = KEPT,
        start_by: datetime | Kept | None = KEPT,
        retention: Seconds | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """Changes when the task starts, while it waits, how long it is kept, and its tags.
        `run_at=None`: as soon as a worker is free; `start_by=None`: it waits indefinitely;
        `tags=()`: none."""
        client = self._client
        change = task_change(priority, run_at, start_by, retention, tags)
        client._driver.run(tasks.update(client._session, self._ref, change))

    def delete(self, abort: bool = False) -> None:
        """Deletes the task with its arguments, its result and all else that is known of it. One
        that runs is refused; `abort` stops it first."""
        client = self._client
        client._driver.run(tasks.delete(client._session, self._ref, abort=abort))

    def retry(
        self, idempotency_key: str | None = None, *, replay: Replay | None = None
    ) -> SyncTask[R, P]:
        """Submits a new task with the same arguments. Stored at most once, like `submit`."""
        client = self._client
        steps = tasks.retry(client._session, self._ref, idempotency_key, replay)
        return SyncTask(client, client._driver.run(steps))

    def __repr__(self) -> str:
        return f"<task {self.id} of {self.endpoint}>"
