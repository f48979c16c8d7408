"""``service`` makes a class whose endpoints can be hosted."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from .endpoints import ENDPOINT, EndpointDefinition, not_of_instance
from .executable import ServiceError
from .metrics import Metric
from .mounts import Mount, mounts_of
from .options import (
    Duration,
    check_description,
    check_gpus,
    check_image,
    check_models,
    check_packages,
    check_processes,
    check_ready_timeout,
)
from .placement import Place, check_placement
from .sockets import SocketMount
from .unknown import known_options

Class = TypeVar("Class", bound=type)

SERVICE = "__tessera_service__"
OWNER = "__tessera_owner__"

_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ENDPOINT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")

RESERVED_NAMES = frozenset(
    [
        "submit",
        "status",
        "get",
        "cancel",
        "retry",
        "events",
        "stream",
        "schema",
        "schema.json",
        "docs",
        "docs.json",
        "openapi",
        "index",
        "assets",
        "livez",
        "readyz",
        "healthz",
        "metrics",
        "federate",
        "api",
        "tessera",
    ]
)
"""First segments of paths that the server uses itself, or may use later."""


@dataclass(frozen=True)
class ServiceDefinition:
    """A class with its endpoints, checked but for the types of their arguments."""

    name: str
    description: str | None
    target: type
    endpoints: Sequence[EndpointDefinition]
    metrics: Sequence[Metric] | None
    placement: Mapping[str, Any] = field(default_factory=dict)
    """``requires`` and ``place``, as the manifest has them."""
    ready_timeout_ms: int | None = None
    processes: int | None = None
    packages: Sequence[str] = ()
    """System packages, by the names of Debian."""
    image: str | None = None
    """The container image that is the root of its workers."""
    models: Mapping[str, str] | None = None
    mounts: Sequence[tuple[Mount, Mapping[str, Any]]] = ()
    """Mounted servers, with their manifests."""
    gpus: Mapping[str, float] = field(default_factory=dict)
    """``gpus`` and ``gpuMemoryMib``, as the manifest has them."""


@overload
def service(target: Class, /) -> Class: ...
@overload
def service(
    *,
    name: str | None = None,
    description: str | None = None,
    metrics: Sequence[Metric] | None = None,
    requires: Mapping[str, str] | None = None,
    place: Place | None = None,
    ready_timeout: Duration | None = None,
    processes: int | None = None,
    packages: Sequence[str] | None = None,
    image: str | None = None,
    models: Mapping[str, str] | None = None,
    gpus: float | None = None,
    gpu_memory: str | None = None,
) -> Callable[[Class], Class]: ...
@known_options("@service")
def service(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    metrics: Sequence[Metric] | None = None,
    requires: Mapping[str, str] | None = None,
    place: Place | None = None,
    ready_timeout: Duration | None = None,
    processes: int | None = None,
    packages: Sequence[str] | None = None,
    image: str | None = None,
    models: Mapping[str, str] | None = None,
    gpus: float | None = None,
    gpu_memory: str | None = None,
) -> Any:
    """Makes a service of a class, which is constructed once per worker, without arguments.

    A method ``setup`` is called before the first call, and ``teardown`` after the last one. A
    method ``ready`` is asked before the first call, and every second until it returns ``True``;
    ``False``, or a text that says why, is "not yet". It is asked every 5 s afterwards: a worker
    that says no gets no calls. All may be async.

    - ``name``: a DNS label. Default: the name of the class, ``PageReader`` as ``page-reader``.
    - ``description``: default: the docstring of the class.
    - ``metrics``: default: all that ``counter``, ``gauge`` and ``histogram`` have declared.
    - ``requires``: labels that a machine must have to run it, such as ``{"gpu": "*"}``, where
      ``*`` is any value. The deployment may require more, and decides where both name a label.
    - ``place``: who brings the workers: the nodes of the platform (``local``), machines that join
      (``remote``), or both (``any``, the default). A deployment with another place than ``any``
      decides.
    - ``ready_timeout``: how long a worker may take to load it, import and constructor together,
      such as ``"15m"`` for one that reads a large model; from 1 s to 24 h. The setting of the
      deployment goes before it. Default: what the operator says, by default 10 min.
    - ``processes``: how many processes a worker may start besides its own, as ``subprocess`` and
      ``multiprocessing`` do, from 0 to 1,000. The setting of the deployment goes before it.
      Default: 0.
    - ``packages``: system packages that it needs, by the names of Debian, such as ``["ffmpeg"]``,
      at most 64. Where it is deployed, their programs and libraries are in its sandbox.
    - ``image``: the container image that is the root of its workers' file system where it is
      deployed, such as ``"registry.example.com/acme/reader:1"``, instead of ``packages``. A deploy
      pins it to its digest. Default: none.
    - ``models``: where its models are, by the names that it has for them, such as
      ``{"qwen": "hf://Qwen/Qwen3-0.6B"}``. A deploy pins each; ``model_path("qwen")`` is its
      folder in a worker. Default: none.
    - ``gpus``: how many GPUs each worker has, which it shares with nobody, from 0 to 16, or which
      part of one it has, such as ``0.5``. The settings of the deployment go before it. Default:
      none.
    - ``gpu_memory``: what it has of the memory of a GPU that it shares, such as ``"20GiB"``, or of
      each of its ``gpus``. Default: the whole, or its part.
    """

    def decorate(cls: Any) -> Any:
        if not isinstance(cls, type):
            raise ServiceError(f"@service needs a class, not {cls!r}")
        chosen = _kebab(cls.__name__) if name is None else name
        at = f'service "{chosen}"'
        if not isinstance(chosen, str) or not _DNS_LABEL.fullmatch(chosen):
            raise ServiceError(
                f"{at}: the name must be a DNS label: "
                "lower-case letters, digits and inner hyphens, at most 63"
            )
        about = check_description(description or _own_docstring(cls), at)
        placement = check_placement(requires, place, at)
        ready_ms = check_ready_timeout(ready_timeout, at)
        started = check_processes(processes, at)
        system = check_packages(packages, at)
        devices = check_gpus(gpus, gpu_memory, at)
        root = check_image(image, at)
        mounts = mounts_of(cls, at)
        endpoints = _endpoints(cls, at, is_optional=len(mounts) > 0)
        _check_sockets(mounts, endpoints, at)
        weights = check_models(models, at)
        definition = ServiceDefinition(
            chosen,
            about,
            cls,
            endpoints,
            metrics,
            placement,
            ready_ms,
            started,
            system,
            root,
            weights,
            mounts,
            devices,
        )
        setattr(cls, SERVICE, definition)
        for endpoint in definition.endpoints:
            setattr(endpoint.function, OWNER, cls)
        return cls

    return decorate if target is None else decorate(target)


def definition_of(value: object) -> ServiceDefinition | None:
    """The definition of a decorated class; None for anything else, also for a class below it."""
    found = vars(value).get(SERVICE) if isinstance(value, type) else None
    return found if isinstance(found, ServiceDefinition) else None


def owner_of(method: Callable[..., Any]) -> type | None:
    """The service whose endpoint a function is; None for any other function."""
    return getattr(method, OWNER, None)


def _endpoints(cls: type, place: str, *, is_optional: bool) -> Sequence[EndpointDefinition]:
    """The marked methods of a class and of those above it; one that overrides takes its place."""
    methods: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        methods.update(vars(base))
    for name, method in methods.items():
        if isinstance(method, (staticmethod, classmethod)) and hasattr(method.__func__, ENDPOINT):
            raise not_of_instance(method, f"{place}, {name}")
    found = [getattr(method, ENDPOINT) for method in methods.values() if hasattr(method, ENDPOINT)]
    names: set[str] = set()
    for each in found:
        at = f'{place}, endpoint "{each.name}"'
        if not isinstance(each.name, str):
            raise ServiceError(f"{at}: the name must be a text, not {each.name!r}")
        if each.name in RESERVED_NAMES:
            raise ServiceError(f"{at}: this name is reserved for the server; choose another")
        if not _ENDPOINT_NAME.fullmatch(each.name):
            raise ServiceError(
                f"{at}: the name must begin with a letter and have only letters, digits, _ and -, "
                "at most 63"
            )
        if each.name in names:
            raise ServiceError(f"{place}: two endpoints named {each.name}")
        names.add(each.name)
    if not found and not is_optional:
        raise ServiceError(
            f"{place} has no endpoints; mark at least one method with @api or @task, "
            "or mount a server"
        )
    return found


def _check_sockets(
    mounts: Sequence[tuple[Mount, Any]], endpoints: Sequence[EndpointDefinition], place: str
) -> None:
    """Refuses paths of sockets at which something else would answer."""
    taken = RESERVED_NAMES | {each.name for each in endpoints}
    for mount, _ in mounts:
        name = mount.path[1:]
        if isinstance(mount, SocketMount) and name in taken:
            holder = "the server" if name in RESERVED_NAMES else "the endpoint of this name"
            raise ServiceError(
                f"{place}: a socket cannot be at {mount.path}, which is for {holder}; "
                'choose another path, as in @socket(route="/live")'
            )


def _kebab(name: str) -> str:
    return (
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", name).lower().strip("-")
    )


def _own_docstring(cls: type) -> str | None:
    return inspect.cleandoc(cls.__doc__) if cls.__doc__ else None
