"""What the clients that `tessera client generate --language python` writes are made of."""

from __future__ import annotations

import enum
import ssl
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from .async_client import AsyncEndpoint, AsyncHTTPClient, AsyncTask
from .files import Content, ResultFile, Upload
from .generics import P, R
from .settings import Seconds
from .sync_client import SyncEndpoint, SyncHTTPClient, SyncTask
from .tasks import Replay

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

S = TypeVar("S", bound="SyncTaskEndpoint[Any, Any]")
A = TypeVar("A", bound="AsyncTaskEndpoint[Any, Any]")
C = TypeVar("C", bound="SyncClient")
D = TypeVar("D", bound="AsyncClient")


class Unset(enum.Enum):
    """The type of `UNSET`."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
"""An argument that is not sent, so that the function's default holds."""


class ArrayLike(Protocol):
    """An array of numpy, a table or a series of pandas, and what else converts to an array."""

    def __array__(self) -> Any: ...


FileArgument: TypeAlias = Upload | ResultFile | Content | ArrayLike
"""A path, bytes, an open file, or an array or table where the endpoint takes their files."""


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are set."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


class SyncApiEndpoint(Generic[R, P]):
    def __init__(self, endpoint: SyncEndpoint) -> None:
        self._endpoint = endpoint

    def _call(self, arguments: Mapping[str, Any]) -> R:
        result: R = self._endpoint(**_given(arguments))
        return result

    def _stream(self, arguments: Mapping[str, Any]) -> Generator[P, None, None]:
        return self._endpoint.stream(**_given(arguments))


class SyncTaskEndpoint(SyncApiEndpoint[R, P]):
    def task(self, task_id: str) -> SyncTask[R, P]:
        """Returns a handle on a task submitted earlier. Sends no request."""
        return self._endpoint.task(task_id)

    def _submit(self, arguments: Mapping[str, Any]) -> SyncTask[R, P]:
        return self._endpoint.submit(**_given(arguments))

    def with_options(
        self: S,
        *,
        idempotency_key: str | None = None,
        replay: Replay | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Seconds | None = None,
        start_by: datetime | None = None,
        start_within: Seconds | None = None,
        retention: Seconds | None = None,
        key: str | None = None,
    ) -> S:
        """The endpoint with submit options. Spans are seconds or timedeltas."""
        endpoint = self._endpoint.with_options(
            idempotency_key=idempotency_key,
            replay=replay,
            priority=priority,
            run_at=run_at,
            delay=delay,
            start_by=start_by,
            start_within=start_within,
            retention=retention,
            key=key,
        )
        return type(self)(endpoint)


class AsyncApiEndpoint(Generic[R, P]):
    def __init__(self, endpoint: AsyncEndpoint) -> None:
        self._endpoint = endpoint

    async def _call(self, arguments: Mapping[str, Any]) -> R:
        result: R = await self._endpoint(**_given(arguments))
        return result

    def _stream(self, arguments: Mapping[str, Any]) -> AsyncGenerator[P, None]:
        return self._endpoint.stream(**_given(arguments))


class AsyncTaskEndpoint(AsyncApiEndpoint[R, P]):
    def task(self, task_id: str) -> AsyncTask[R, P]:
        """Returns a handle on a task submitted earlier. Sends no request."""
        return self._endpoint.task(task_id)

    async def _submit(self, arguments: Mapping[str, Any]) -> AsyncTask[R, P]:
        return await self._endpoint.submit(**_given(arguments))

    def with_options(
        self: A,
        *,
        idempotency_key: str | None = None,
        replay: Replay | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Seconds | None = None,
        start_by: datetime | None = None,
        start_within: Seconds | None = None,
        retention: Seconds | None = None,
        key: str | None = None,
    ) -> A:
        """The endpoint with submit options. Spans are seconds or timedeltas."""
        endpoint = self._endpoint.with_options(
            idempotency_key=idempotency_key,
            replay=replay,
            priority=priority,
            run_at=run_at,
            delay=delay,
            start_by=start_by,
            start_within=start_within,
            retention=retention,
            key=key,
        )
        return type(self)(endpoint)


class SyncClient:
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
        self._client = SyncHTTPClient(
            url,
            token=token,
            timeout=timeout,
            retries=retries,
            deployment=deployment,
            verify=verify,
        )

    @property
    def token(self) -> str | None:
        """The token that is sent; may be set to another at any time."""
        return self._client.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._client.token = token

    def wait_ready(self, timeout: float = 60) -> None:
        """Waits until the deployment accepts calls; raises `NotReady` after `timeout` seconds."""
        self._client.wait_ready(timeout)

    def close(self) -> None:
        self._client.close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
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
        self._client = AsyncHTTPClient(
            url,
            token=token,
            timeout=timeout,
            retries=retries,
            deployment=deployment,
            verify=verify,
        )

    @property
    def token(self) -> str | None:
        """The token that is sent; may be set to another at any time."""
        return self._client.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._client.token = token

    async def wait_ready(self, timeout: float = 60) -> None:
        """Waits until the deployment accepts calls; raises `NotReady` after `timeout` seconds."""
        await self._client.wait_ready(timeout)

    async def close(self) -> None:
        await self._client.close()

    async def __aenter__(self: D) -> D:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


__all__ = [
    "UNSET",
    "ArrayLike",
    "AsyncApiEndpoint",
    "AsyncClient",
    "AsyncGenerator",
    "AsyncTask",
    "AsyncTaskEndpoint",
    "FileArgument",
    "Generator",
    "Mapping",
    "NotRequired",
    "ResultFile",
    "Sequence",
    "SyncApiEndpoint",
    "SyncClient",
    "SyncTask",
    "SyncTaskEndpoint",
    "Unset",
]
