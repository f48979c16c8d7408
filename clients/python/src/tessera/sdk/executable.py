"""The port between the host and what it hosts: a service whose endpoints can be executed.

``tessera.sdk`` implements it for services that are written with its decorators,
``tessera.bentoml`` for BentoML's. The host knows nothing else of either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Json = Any
"""A value that survives JSON unchanged."""


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file argument: its bytes are in ``data``, or on disk at ``path`` (large ones)."""

    content_type: str
    filename: str | None
    size: int
    data: bytes | None = None
    path: Path | None = None


class Outlet(Protocol):
    """Takes what a call tells while it runs. Safe to call from any thread."""

    def progress(self, fraction: float, message: str) -> None:
        """``fraction`` is from 0 to 1."""

    def usage(self, units: Mapping[str, Any]) -> None:
        """Amounts of units that the call used; those of several reports add up."""

    def log(self, level: str, message: str, fields: Mapping[str, Json] | None) -> None:
        """``level`` is debug, info, warn or error."""

    def close(self) -> None:
        """Sends what waits, and drops everything that comes later: the call has ended."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The request that a call came with."""

    method: str
    url: str
    """With scheme, host and query."""
    headers: list[tuple[str, str]]
    """Names in lower case."""
    client: str | None
    """The address of the caller."""


@dataclass(slots=True)
class ResponseHead:
    """What a function says of its answer."""

    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Names in lower case; one may stand several times."""


@dataclass(slots=True)
class IncomingCall:
    """One execution of an endpoint."""

    endpoint: str
    arguments: str
    """JSON text of an object, in which a file is its index in ``files``."""
    files: Sequence[IncomingFile]
    folder: Path
    """The call's own folder. It exists only if something made it, and goes with the call."""
    task_id: str
    attempt: int
    """From 1."""
    deadline_seconds: float
    """When the call times out, in seconds since 1970."""
    outlet: Outlet
    trace: str | None = None
    """``traceparent``, then a space and ``tracestate`` if there is one."""
    request: RequestHead | None = None
    """The request that it came with, if its endpoint is shown it."""
    response: ResponseHead | None = None
    """What is said of the answer: read with the result, or with the first piece of a stream."""
    temporary: list[Path] = field(default_factory=list)
    """Files and folders that were written for the call; the host removes them at its end."""
    ended: bool = False
    """True once its end was told: what runs on behind it belongs to no call any more."""
    aborted: str | None = None
    """Why the call was aborted: timeout, cancelled, shutdown or caller_gone. Set by the host."""


@dataclass(frozen=True, slots=True)
class JsonResult:
    """JSON text; of a result that is text and no JSON, ``text`` is set as well."""

    json: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class FileResult:
    """A file: bytes, or a path that the host copies (moves, if ``owned``) after the call."""

    content: bytes | Path
    content_type: str
    filename: str | None = None
    owned: bool = False


@dataclass(frozen=True, slots=True)
class StreamResult:
    """Pieces as they are made: JSON texts, strings, or bytes, as the manifest's ``stream`` says."""

    pieces: Iterator[str | bytes] | AsyncIterator[str | bytes]
    is_json: bool = False


Result = JsonResult | FileResult | StreamResult

Ends = Sequence[Result | Exception]
"""The ends of the calls of a batch, in their order."""

Tell = Callable[[int, Result | Exception], None]
"""Tells the end of a call of a batch, by its index, while others go on."""


class CallError(Exception):
    """The failure of a call, as its caller sees it.

    ``code`` is a Connect code in its wire spelling, such as ``invalid_argument``; ``reason`` is
    ARGUMENTS_INVALID, CALL_FAILED, OUTPUT_INVALID or RESULT_TOO_LARGE. ``status`` is the HTTP
    status on the deployment's paths, 400 to 599; without one it is that of the code. Any other
    exception of an endpoint becomes CALL_FAILED with the code ``internal``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "internal",
        reason: str = "CALL_FAILED",
        violations: Sequence[tuple[str, str]] = (),
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.reason = reason
        self.violations = violations


class Executable(Protocol):
    """An endpoint."""

    @property
    def manifest(self) -> Mapping[str, Json]:
        """Its part of the manifest, as ``EndpointManifest`` of the node has it."""
        ...

    @property
    def asynchronous(self) -> bool:
        """``execute`` is awaited on the event loop; otherwise it runs in a thread of its own."""
        ...

    @property
    def execute(self) -> Callable[[IncomingCall], Result | Awaitable[Result]]:
        """Reads and checks the arguments, runs the function, checks and writes its result."""
        ...

    @property
    def execute_batch(self) -> Callable[[Sequence[IncomingCall], Tell], Ends | Awaitable[Ends]]:
        """The same for several calls at once, if the manifest has ``batch``: one end for each.

        An end that is known before may be told before, so that nobody waits for another call.
        """
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """A program that listens on a port of its own."""

    command: tuple[str, ...]
    """The program and its arguments.

    ``{port}`` stands for the port, ``{model:NAME}`` for the folder of a model.
    """
    port: int | None = None
    """Where it listens; None: at a free one, which ``{port}`` and the variable ``PORT`` tell it."""
    health: str | None = None
    """The path at which it answers with 2xx once it is ready; None: it is when it listens."""


PROGRAM_PROCESSES = 64
"""Processes that a worker may start whose service has a program, if nobody else says."""


class MountedServer:
    """An application (ASGI), or a program, that answers requests at a path of its service."""

    def __init__(self, manifest: Mapping[str, Json]) -> None:
        self.manifest = manifest
        """As ``MountManifest`` of the node has it."""

    @property
    def program(self) -> Program | None:
        """The program, after the service was set up; None: ``application`` makes an application."""
        return None

    @property
    def is_program(self) -> bool:
        """True for a program, before the service was set up, too."""
        return self.program is not None

    @property
    def stands_before_program(self) -> bool:
        """True for an application whose requests may go on to its ``program``, by itself."""
        return False

    @property
    def max_message(self) -> int | None:
        """Bytes that a message of a function's WebSocket may have; None: it is no such function."""
        return None

    def application(self) -> Any:
        """The application, after the service was set up."""
        raise NotImplementedError


class HostedService(Protocol):
    """A service that was loaded."""

    @property
    def manifest(self) -> Mapping[str, Json]:
        """As ``ServiceManifest`` of the node has it."""
        ...

    @property
    def endpoints(self) -> Mapping[str, Executable]:
        """By name."""
        ...

    @property
    def ready(self) -> Callable[[], Any] | None:
        """What is asked after ``setup`` whether it may take calls; None: it may."""
        ...

    @property
    def mounts(self) -> Sequence[MountedServer]:
        """In the order of the manifest."""
        ...

    @property
    def programs(self) -> Sequence[tuple[str, Program]]:
        """Programs that it calls itself and no caller reaches, by name, after ``setup``."""
        ...

    async def setup(self) -> None:
        """Prepares the process, before the first call."""
        ...

    async def teardown(self) -> None:
        """Releases what ``setup`` made, after the last call."""
        ...


class ServiceError(Exception):
    """A service that cannot be hosted. The message is for its author, with the place."""

    function: Callable[..., Any] | None = None
    """The method that it is about, where it was found after the module had been imported."""
