"""``api`` and ``task`` mark the methods of a service that can be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar, overload

from .batches import Batch
from .executable import ServiceError
from .options import Duration, Size, check_names
from .placement import Place

P = ParamSpec("P")
R = TypeVar("R")

ENDPOINT = "__tessera_endpoint__"


@dataclass(frozen=True)
class EndpointDefinition:
    """What ``api`` or ``task`` was given; the service reads it."""

    kind: str
    function: Callable[..., Any]
    name: str
    options: dict[str, Any] = field(default_factory=dict)


@overload
def api(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def api(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: Duration | None = None,
    abort_grace: Duration | None = None,
    idempotent: bool | None = None,
    concurrency: int | None = None,
    concurrency_per_key: int | None = None,
    rate_per_key: str | None = None,
    batch: Batch | None = None,
    max_json: Size | None = None,
    requires: Mapping[str, str] | None = None,
    place: Place | None = None,
    headers: Sequence[str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def api(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Marks a method that answers in the call.

    - ``timeout``: the time limit of one call, from 1 ms to 24 h. Default: 60 s, because callers
      and proxies rarely wait longer.
    - ``concurrency``: the calls that one worker runs at a time, from 1 to 1,000. Default: 100;
      with ``batch``, where it counts batches, 1.
    - ``concurrency_per_key``: the calls of one key (the header ``Tessera-Key``, or the caller's
      token) under way on a node, from 1 to 10,000. ``rate_per_key``: its calls on a node in a time,
      such as ``"10/min"``, with as many at once. More are refused. Default: any number.
    - ``abort_grace``: how long the function may go on that does not hear its abort, from 1 ms to
      24 h: when its caller has left, before it counts as that; and from then on, while others run
      in its worker, which takes no more calls meanwhile. Then the worker is ended. Default: 5 min.
    - ``idempotent``: True if a call may run more than once, with the same effect as once. A call
      whose worker ends before anything of its answer was sent then runs again in another worker,
      within its ``timeout``. Default: False, because only you know; the caller is answered 503.
    - ``batch``: how calls are put together; each parameter is then a list. Default: they are not.
    - ``max_json``: the largest JSON body of a call, in bytes or as ``"64MiB"``; the operator of a
      platform may allow less. Default: 4 MiB, because it is held in memory.
    - ``requires``: labels that a machine must have, such as ``{"gpu": "*"}``, besides those of
      the service. ``place``: ``local``, ``remote`` or ``any``. Default: that of the service.
    - ``headers``: the headers of requests that ``ctx.request`` shows, such as ``["x-tenant"]``;
      ``["*"]`` is all, ``[]`` the method, URL and query alone. They are stored with the task, so
      ``*`` leaves out ``authorization`` and ``cookie``. Default: no request is shown.
    - ``name``: default: that of the method. ``description``: default: its docstring.
    """
    return _mark("api", function, options)


@overload
def task(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def task(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: Duration | None = None,
    abort_grace: Duration | None = None,
    concurrency: int | None = None,
    retries: int | None = None,
    backoff: Duration | None = None,
    retention: Duration | None = None,
    queue_limit: int | None = None,
    priority: int | None = None,
    concurrency_per_key: int | None = None,
    rate_per_key: str | None = None,
    fair: bool | Literal["seconds"] | None = None,
    batch: Batch | None = None,
    max_json: Size | None = None,
    requires: Mapping[str, str] | None = None,
    place: Place | None = None,
    headers: Sequence[str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Marks a method whose calls are stored in the queue and run when a worker is free.

    - ``timeout``: the time limit of one attempt, from 1 ms to 24 h. Default: 10 min.
    - ``concurrency``: the attempts that one worker runs at a time, from 1 to 1,000. Default: 1,
      because tasks mostly compute; to compute faster, add workers.
    - ``retries``: the attempts after one that raised or timed out, up to 100, with a pause that
      begins at ``backoff`` (0 to 1 h, default 1 s) and doubles. Default: none, because only you
      know whether the function may run twice.
    - ``retention``: how long a task is kept after its end, from 1 s to 365 d. Default: 24 h.
    - ``queue_limit``: the waiting tasks beyond which submits are refused. Default: 10,000.
    - ``priority``: tasks of a higher one run first, from -1,000 to 1,000. Default: 0.
    - ``concurrency_per_key``: the tasks of one key (the header ``Tessera-Key``, or the caller's
      token) that run at a time, on all nodes together, from 1 to 10,000; they start by their keys
      in turn then. Default: any number.
    - ``rate_per_key``: the starts of one key, on all nodes together, such as ``"10/min"``: no
      stretch of a minute has more. A number from 1 to 10,000, and ``s``, ``min``, ``h`` or ``d``.
      An attempt that is made again counts as well. Default: any number.
    - ``fair``: tasks start by their keys in turn: one of each key that has some waiting, and then
      the next one of each. ``priority`` then counts among the tasks of a key. With ``"seconds"``
      the next one is of the key whose tasks have run for the least time. Default: False.
    - ``abort_grace``: how long the function may go on that does not hear its abort, from 1 ms to
      24 h: when its caller has left, before it counts as that; and from then on, while others run
      in its worker, which takes no more calls meanwhile. Then the worker is ended. Default: 5 min.
    - ``batch``: how calls are put together; each parameter is then a list. Default: they are not.
    - ``max_json``: the largest JSON body of a call, in bytes or as ``"64MiB"``; the operator of a
      platform may allow less. Default: 4 MiB, because it is held in memory.
    - ``requires``: labels that a machine must have, such as ``{"gpu": "*"}``, besides those of
      the service. ``place``: ``local``, ``remote`` or ``any``. Default: that of the service.
    - ``headers``: the headers of requests that ``ctx.request`` shows, such as ``["x-tenant"]``;
      ``["*"]`` is all, ``[]`` the method, URL and query alone. They are stored with the task, so
      ``*`` leaves out ``authorization`` and ``cookie``. Default: no request is shown.
    - ``name``: default: that of the method. ``description``: default: its docstring.
    """
    return _mark("task", function, options)


def _mark(kind: str, function: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(method, (staticmethod, classmethod)):
            raise not_of_instance(method, f"@{kind} {method.__func__.__name__}")
        if not inspect.isfunction(method):
            raise ServiceError(f"@{kind} can only be put on a method, not on {method!r}")
        if hasattr(method, ENDPOINT):
            raise ServiceError(f"@{kind} {method.__name__}: one decorator is enough")
        check_names(kind, options, f"@{kind} {method.__name__}")
        name = options.get("name") or method.__name__
        setattr(method, ENDPOINT, EndpointDefinition(kind, method, name, options))
        return method

    return decorate if function is None else decorate(function)


def not_of_instance(
    method: staticmethod[..., Any] | classmethod[Any, ..., Any], at: str
) -> Exception:
    """The error for a method that is not called on the instance, which each worker has one of."""
    decorator = "staticmethod" if isinstance(method, staticmethod) else "classmethod"
    return ServiceError(
        f"{at}: an endpoint is called on the instance of its class; "
        f"remove @{decorator} and make self its first parameter"
    )
