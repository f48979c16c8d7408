"""``mount`` puts an ASGI application, or a program, behind a service: it answers what no endpoint
does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from .executable import Json, MountedServer, Program, ServiceError
from .options import (
    DAY_MS,
    DEFAULT_TIMEOUTS_MS,
    Duration,
    key_limits,
    milliseconds,
    resolve_options,
    whole_number,
)
from .unknown import refuse_unknown

MAX_MOUNTS = 16
MAX_QUEUE_PATH_CHARACTERS = 63
MAX_CONCURRENCY = 10_000
DEFAULT_CONCURRENCY = 100

_PATH = re.compile(r"/(?:[^/?#{}\\](?:[^?#{}\\]*[^/?#{}\\])?)?")
MAX_PATH_CHARACTERS = 255
MAX_COMMAND_BYTES = 8 * 1024
_HEALTH = re.compile(r"/[!-~]{0,254}")
_PAGE = re.compile(r"/[!-\"$-~]{0,254}")


class QueueOptions(TypedDict, total=False):
    """How requests to a mounted server run as tasks: as the options of ``task``."""

    timeout: Duration
    retries: int
    backoff: Duration
    retention: Duration
    queue_limit: int
    priority: int
    headers: Sequence[str]


def is_path(path: str) -> bool:
    """Whether an endpoint or a server can be at a path, which is decoded, as the node has it."""
    return (
        len(path) <= MAX_PATH_CHARACTERS
        and _PATH.fullmatch(path) is not None
        and path.isprintable()
    )


class Mount:
    """A mounted server of a service, as ``mount`` returns it."""

    max_message: int | None = None

    def __init__(
        self,
        path: str,
        app: Any,
        *,
        program: Mapping[str, Any],
        timeout: Duration | None,
        concurrency: int | None,
        concurrency_per_key: int | None,
        rate_per_key: str | None,
        queue: bool | QueueOptions,
        metrics: str | None,
        openapi: str | Literal[False] | None,
    ) -> None:
        self.path = path
        self.app = app
        self._program = program
        self.method: Callable[[Any], Any] | None = None
        self._timeout = timeout
        self._concurrency = concurrency
        self._per_key = (concurrency_per_key, rate_per_key)
        self._queue = queue
        self._metrics = metrics
        self._openapi = openapi

    def __call__(self, method: Callable[[Any], Any]) -> Mount:
        """Decorates the method that makes the application."""
        if self.app is not None or self._program or not callable(method):
            raise ServiceError(
                f"mount({self.path!r}) decorates a method that returns the application, "
                "or is given the application as its second argument"
            )
        self.method = method
        return self

    def manifest(self, place: str) -> dict[str, Json]:
        """``MountManifest`` of the node. Raises ``ServiceError`` for wrong options."""
        path = self.path
        if not isinstance(path, str) or not is_path(path):
            raise ServiceError(
                f'{place}: a server is mounted at "/", or at a path such as "/ui" without a slash '
                f"at its end, not at {path!r:.300}"
            )
        if self.app is None and self.method is None and not self._program:
            raise ServiceError(
                f"{place}: mount({path!r}) has no application: give it one, as in "
                f"mount({path!r}, app), or decorate the method that returns one; "
                f'or name a program: mount({path!r}, command=["./server", "--port", "{{port}}"])'
            )
        at = f"{place}, mount({path!r})"
        timeout = DEFAULT_TIMEOUTS_MS["api"] / 1_000 if self._timeout is None else self._timeout
        most = DEFAULT_CONCURRENCY if self._concurrency is None else self._concurrency
        metrics = self._metrics
        if metrics is not None and not (isinstance(metrics, str) and _PAGE.fullmatch(metrics)):
            raise ServiceError(
                f'{at}: metrics must be a path such as "/metrics", in at most 255 characters of '
                "ASCII"
            )
        by_key = key_limits(*self._per_key, at)
        return {
            "path": path,
            "timeoutMs": milliseconds(timeout, at, "timeout", 1, DAY_MS),
            "concurrency": whole_number(most, at, "concurrency", 1, MAX_CONCURRENCY),
            **({"byKey": by_key} if by_key else {}),
            **_check_queue(self._queue, path, at),
            **({} if metrics is None else {"metrics": metrics}),
            **_check_openapi(self._openapi, at),
        }

    def program(self, place: str) -> Program | None:
        """The program; None for an application. Raises ``ServiceError`` for a wrong one."""
        if not self._program:
            return None
        at = f"{place}, mount({self.path!r})"
        if self.app is not None:
            raise ServiceError(f"{at} has an application and a program: leave one out")
        command: Any = self._program["command"]
        port, health = self._program["port"], self._program["health"]
        if not _is_command(command):
            raise ServiceError(
                f"{at}: command must be a list of texts, first the program, such as "
                f'["vllm", "serve", "--port", "{{port}}"], of at most {MAX_COMMAND_BYTES} bytes '
                "together and without NUL"
            )
        if port is not None:
            whole_number(port, at, "port", 1, 65_535)
        if health is not None and not (isinstance(health, str) and _HEALTH.fullmatch(health)):
            raise ServiceError(
                f'{at}: health must be a path such as "/health", of at most 255 characters '
                "without spaces"
            )
        return Program(tuple(command), port, health)


def _is_command(command: Any) -> bool:
    return (
        isinstance(command, (list, tuple))
        and len(command) > 0
        and all(isinstance(each, str) and "\0" not in each for each in command)
        and command[0] != ""
        and len(" ".join(command).encode()) <= MAX_COMMAND_BYTES
    )


def _check_queue(queue: object, path: str, at: str) -> dict[str, Json]:
    """The option ``queue`` as the manifest has it; empty where requests are no tasks."""
    if queue is None or queue is False:
        return {}
    if queue is not True and not isinstance(queue, Mapping):
        raise ServiceError(f"{at}: queue must be True, or a dict of options, not {queue!r:.100}")
    if len(path) > MAX_QUEUE_PATH_CHARACTERS:
        most = MAX_QUEUE_PATH_CHARACTERS
        raise ServiceError(f"{at}: with queue, its path must have at most {most} characters")
    options = dict(queue) if isinstance(queue, Mapping) else {}
    refuse_unknown(map(str, options), tuple(QueueOptions.__annotations__), f"{at}, queue")
    resolved = resolve_options("task", options, f"{at}, queue")
    taken = ("timeoutMs", "retentionMs", "retries", "queueLimit", "priority")
    headers = resolved["request"]["headers"] if "request" in resolved else []
    return {"queue": {**{name: resolved[name] for name in taken}, "headers": headers}}


def _check_openapi(openapi: object, at: str) -> dict[str, Json]:
    """The option ``openapi`` as the manifest has it."""
    if openapi is None:
        return {}
    if openapi is False:
        return {"openapi": ""}
    if not isinstance(openapi, str) or not _PAGE.fullmatch(openapi):
        raise ServiceError(
            f'{at}: openapi must be a path below that of the server, such as "/doc", or False, '
            f"not {openapi!r:.300}"
        )
    return {"openapi": openapi}


def mount(
    path: str,
    app: Any = None,
    *,
    command: Sequence[str] | None = None,
    port: int | None = None,
    health: str | None = None,
    timeout: Duration | None = None,
    concurrency: int | None = None,
    concurrency_per_key: int | None = None,
    rate_per_key: str | None = None,
    queue: bool | QueueOptions = False,
    metrics: str | None = None,
    openapi: str | Literal[False] | None = None,
) -> Any:
    """Mounts an ASGI application, such as one of FastAPI or Gradio, at a path of the service.

    An attribute of the class, or a decorator of a method that returns the application::

        @service
        class Shop:
            app = mount("/", fastapi_app)

            @mount("/ui")
            def pages(self): return gradio_app

    It answers all requests at the path and below it that are for no endpoint, also WebSockets, and
    runs in uvicorn, which the environment of the service has to have. Its lifespan begins after
    ``setup``. A WSGI application, such as one of Flask, is wrapped: ``a2wsgi.WSGIMiddleware(app)``.

    With ``command`` it is a program that listens on a port of its own, and answers those requests::

        server = mount("/v1", command=["vllm", "serve", "/models/qwen", "--port", "{port}"],
                       health="/health")

    - ``command``: the program and its arguments. Each worker starts it in the folder of the
      service, after ``setup``, and ends with it. It may start 64 processes, unless ``processes``
      says otherwise.
    - ``port``: where it listens. Default: a free one, which ``{port}`` in the command and the
      variable ``PORT`` tell it.
    - ``health``: the path at which it answers with 2xx once it is ready. Default: it is ready when
      it listens.
    - ``timeout``: how long it may take until an answer begins. Default: 60 s.
    - ``concurrency``: how many requests and WebSockets one worker takes at a time, at most 10,000.
      Default: 100.
    - ``concurrency_per_key``: the requests and WebSockets of one key (the header ``Tessera-Key``,
      or the caller's token) under way on a node, from 1 to 10,000. ``rate_per_key``: those that
      begin on a node in a time, such as ``"100/min"``, with as many at once. More are refused.
      Default: any number.
    - ``queue``: True, or options, so that any request may be a task: ``POST`` of its path with
      ``/submit`` behind it, or the request itself with the header ``Tessera-Queue: submit``. The
      options are those of ``task``: ``timeout`` (of a whole attempt, default 10 min), ``retries``,
      ``backoff``, ``retention``, ``queue_limit``, ``priority``; and ``headers``, the names of the
      headers that are stored and passed on besides ``accept``, ``content-type`` and
      ``content-encoding``. Default: False.
    - ``metrics``: the path below its own at which it exposes metrics in the format of Prometheus,
      such as ``"/metrics"``. They are shown with those of the platform. Default: none are read.
    - ``openapi``: the path below its own at which it has its OpenAPI document: its operations are
      part of the deployment's ``/docs.json``. False: it has none. Default: ``"/openapi.json"``, as
      FastAPI has it.
    """
    given = {"command": command, "port": port, "health": health}
    program = {} if all(each is None for each in given.values()) else given
    return Mount(
        path,
        app,
        program=program,
        timeout=timeout,
        concurrency=concurrency,
        concurrency_per_key=concurrency_per_key,
        rate_per_key=rate_per_key,
        queue=queue,
        metrics=metrics,
        openapi=openapi,
    )


def mounts_of(cls: type, place: str) -> Sequence[tuple[Mount, Mapping[str, Json]]]:
    """The mounts of a class and of those above it, with their manifests."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    found = [each for each in members.values() if isinstance(each, Mount)]
    described = [(each, each.manifest(place)) for each in found]
    paths = [each.path for each in found]
    if len(paths) > MAX_MOUNTS:
        raise ServiceError(f"{place}: at most {MAX_MOUNTS} servers can be mounted")
    for path in paths:
        if paths.count(path) > 1:
            raise ServiceError(f"{place}: two servers are mounted at {path}")
    return described


class ClassMount(MountedServer):
    """A mount of a class, which makes its application once the class is constructed."""

    def __init__(self, mount: Mount, manifest: Mapping[str, Json], place: str) -> None:
        super().__init__(manifest)
        self._program = mount.program(place)
        self._mount = mount
        self.instance: Any = None

    @property
    def program(self) -> Program | None:
        """The program; None for an application."""
        return self._program

    @property
    def max_message(self) -> int | None:
        """That of ``socket``; None for any other server."""
        return self._mount.max_message

    def application(self) -> Any:
        """What was given, or what the method returns."""
        method = self._mount.method
        return self._mount.app if method is None else method(self.instance)
