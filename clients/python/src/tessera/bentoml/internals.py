"""Everything of BentoML that its documentation does not promise: no other file names it.

What is touched, and the versions in which it is known to be so. "All" is from 1.3.22 to 1.4.40;
tests run on the first and the last, and by hand on those between.

| of BentoML | used for | versions |
|---|---|---|
| ``Service``: ``apis config context envs inner schema()`` | the manifest | all |
| ``Service.inject_config``, ``BentoMLContainer.config`` | defaults of ``traffic`` … | all |
| ``Service``: ``mount_apps middlewares gradio_app_startup_hook`` | mounted servers | all |
| ``PassiveMount``, ``ContextMiddleware`` of BentoML's server | mounted servers | all |
| ``has_custom_command``, ``cmd``, ``__command__``, ``expand_envs`` | commands | absent at first |
| ``APIMethod``: all its fields | endpoints | all |
| ``Service.path_prefix`` | paths | newest |
| ``__root_input__`` of an input spec | a parameter before ``/`` | from 1.4.0 |
| ``IORootModel``, ``multipart_fields``, ``mime_type()`` | arguments and results | all |
| ``SYNC_ITERATOR_TYPES ASYNC_ITERATOR_TYPES eval_type_lenient`` | streams | all |
| ``TensorSchema``: ``format dtype shape`` | arrays as doubles | all |
| ``ServiceContext.in_request``, ``request.state`` | ``bentoml.Context`` | all |
| ``ServiceContext.response``: ``status_code metadata cookies`` | the answer | all |
| ``__bentoml_startup_hook__``, those of ``shutdown`` and ``deployment`` | hooks | all |
| ``Dependency``: ``on url deployment _resolved``; ``cleanup`` | ``bentoml.depends`` | all |
| ``set_current_service``, ``server_context`` | what running code asks | all |
| ``AutoContainer`` | batches | all |
| ``RemoteProxy`` of ``client.proxy`` | a command that others depend on | all |
| ``ResultStatus``; its members' names changed | tasks of dependencies | all |
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

from starlette.responses import Response

from ..sdk.executable import IncomingCall
from ..sdk.responses import tell

OLDEST = (1, 3, 22)
"""Earlier versions do not import with the pydantic of today."""

ARGS = "args"
"""The field that carries ``*args``."""
KWARGS = "kwargs"
"""The field that carries ``**kwargs``."""


def installed_version() -> str:
    """The version of BentoML in this interpreter."""
    return importlib.metadata.version("bentoml")


def is_too_old(version: str) -> bool:
    """True for a version before the first that this adapter knows."""
    numbers = tuple(int(each) for each in re.findall(r"\d+", version)[:3])
    return numbers < OLDEST


def is_service(value: object) -> bool:
    """True for what ``@bentoml.service`` makes."""
    from _bentoml_sdk import Service

    return isinstance(value, Service)


def is_legacy_service(value: object) -> bool:
    """True for a ``bentoml.Service`` of before 1.2, which is made of runners."""
    return any(
        each.__module__.startswith("bentoml._internal.service") for each in type(value).__mro__
    )


def is_legacy_runner(service: Any) -> bool:
    """True for a runner of before 1.2 in the clothes of a service."""
    return any(hasattr(each, "bentoml_runnable_methods__") for each in service.inner.__mro__)


def configured(service: Any) -> Mapping[str, Any]:
    """The configuration of a service, with BentoML's defaults and configuration file."""
    from bentoml._internal.configuration.containers import BentoMLContainer

    service.inject_config()
    values: Mapping[str, Any] = BentoMLContainer.config.services[service.name].get()
    return values


def tell_response(said: Any, call: IncomingCall) -> None:
    """Adds what a method said of its response, ``bentoml.Context.response``, to the answer."""
    response = Response(status_code=said.status_code)
    response.headers.update(said.metadata)
    for cookie in said.cookies:
        response.set_cookie(
            cookie.key,
            cookie.value,
            max_age=cookie.max_age,
            expires=cookie.expires,
            path=cookie.path,
            domain=cookie.domain,
            secure=cookie.secure,
            httponly=cookie.httponly,
            samesite=cookie.samesite,
        )
    tell(response, call)
    if call.response is not None and (content_type := said.metadata.get("content-type")):
        call.response.headers.append(("content-type", content_type))


def unsupported_parts(service: Any) -> list[str]:
    """What of the service cannot be hosted, one word for each."""
    parts = {
        "command behind": has_command(service)
        and (service.middlewares or any(path == "/" for path, _ in mounted(service)))
        and not _proxy_leaves_start(),
        "runner": is_legacy_runner(service),
    }
    return [name for name, present in parts.items() if present]


def mounted(service: Any) -> list[tuple[str, Any]]:
    """What is mounted, by its path, in order. Gradio's pages are among it."""
    return [(path or "/", app) for app, path, _ in service.mount_apps]


def passive_mount(path: str, app: Any) -> Any:
    """A route that leaves to others what the application has no route for."""
    from _bentoml_impl.server.mount import PassiveMount

    return PassiveMount(path, app)


def middleware(service: Any) -> list[Any]:
    """The service's own middlewares, and the one that brings ``bentoml.Context``."""
    from _bentoml_impl.server.app import ContextMiddleware
    from starlette.middleware import Middleware

    return [*own_middleware(service), Middleware(ContextMiddleware, context=service.context)]


def own_middleware(service: Any) -> list[Any]:
    """The service's own middlewares, the outermost first."""
    from starlette.middleware import Middleware

    return [Middleware(each, **options) for each, options in service.middlewares]


async def enter_lifespan(app: Any, stack: contextlib.AsyncExitStack) -> None:
    """Begins the lifespan of a mounted application, of the kinds for which BentoML does."""
    from starlette.applications import Starlette

    if isinstance(app, Starlette):
        await stack.enter_async_context(app.router.lifespan_context(app))
    elif any(each.__module__.startswith("quart.") for each in type(app).__mro__):
        await app.startup()
        stack.push_async_callback(app.shutdown)


def start_pages(service: Any, max_concurrency: int) -> None:
    """Begins the queues of Gradio's pages."""
    service.gradio_app_startup_hook(max_concurrency=max_concurrency)


def has_command(service: Any) -> bool:
    """True for a service that is a command, which answers HTTP itself."""
    ask = getattr(service, "has_custom_command", None)
    return ask is not None and bool(ask())


def command_of(service: Any, instance: Any = None) -> tuple[list[str], int, str]:
    """The command of a service that was set up, its port, and its path for health.

    ``instance`` is that of the service; None: the one that was announced.
    """
    from bentoml import get_current_service  # pyright: ignore[reportAttributeAccessIssue]
    from bentoml._internal.utils import expand_envs

    owner = get_current_service() if instance is None else instance
    make = getattr(owner, "__command__", None)
    command = service.cmd if make is None else make()
    port = service.config.get("http", {}).get("proxy_port", 8000)
    health = service.config.get("endpoints", {}).get("livez", "/health")
    return [expand_envs(each) for each in command], int(port), str(health)


def proxy(service: Any) -> Any:
    """BentoML's own proxy before the command of a service, which something else has started."""
    from _bentoml_impl.server.proxy import create_proxy_app
    from bentoml._internal.context import server_context

    app = create_proxy_app(service)
    begin = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(given: Any) -> AsyncIterator[Any]:
        index = server_context.worker_index
        # It starts the command in the first worker alone.
        server_context.worker_index = 2
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(begin(given))
            finally:
                server_context.worker_index = index
            yield

    app.router.lifespan_context = lifespan
    return app


def _proxy_leaves_start() -> bool:
    """Whether BentoML's proxy starts commands in one worker, and otherwise finds them started."""
    from _bentoml_impl.server import proxy as module

    return "worker_index" in inspect.getsource(module)


def route_of(service: Any, method: Any) -> str:
    """The path of a method, with the prefix that newer services may have for all of them."""
    prefix = (getattr(service, "path_prefix", None) or "").strip("/")
    route: str = method.route.strip("/")
    return "/" + "/".join(each for each in (prefix, route) if each)


def yields(method: Any) -> bool:
    """True for a method that yields, or returns an iterator as its annotation says."""
    from _bentoml_sdk.typing_utils import ASYNC_ITERATOR_TYPES, SYNC_ITERATOR_TYPES

    if method.is_stream:
        return True
    return not method.batchable and _returned(method) in SYNC_ITERATOR_TYPES | ASYNC_ITERATOR_TYPES


def is_asynchronous(method: Any) -> bool:
    """True for a method that is called on the event loop."""
    from _bentoml_sdk.typing_utils import ASYNC_ITERATOR_TYPES

    function = method.func
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or (yields(method) and _returned(method) in ASYNC_ITERATOR_TYPES)
    )


def _returned(method: Any) -> Any:
    """The class of what a method returns: ``Iterator`` of ``Annotated[Iterator[str], …]``."""
    from _bentoml_sdk.io_models import eval_type_lenient

    names = getattr(sys.modules.get(method.func.__module__), "__dict__", None)
    annotation = inspect.signature(method.func).return_annotation
    hint = eval_type_lenient(annotation, names, None)
    return get_origin(get_args(hint)[0] if get_origin(hint) is Annotated else hint)


def takes_root(spec: Any) -> bool:
    """True for the input of a function whose one parameter stands before ``/``."""
    return bool(getattr(spec, "__root_input__", False))


def arrays_of(spec: Any) -> dict[str, str | None]:
    """The fields that are arrays of numpy of any shape, and their types.

    None where there is another field: that of a call with doubles would be read from a value, where
    BentoML reads it from JSON. An array is made of the same lists in both.
    """
    arrays: dict[str, str | None] = {}
    for name, field in () if takes_root(spec) else spec.model_fields.items():
        tensor: Any = field.metadata[0] if len(field.metadata) == 1 else None
        if (
            type(tensor).__name__ != "TensorSchema"
            or (tensor.format, tensor.shape) != ("numpy-array", None)
            or tensor.dtype not in (None, "float16", "float32", "float64")
            or field.alias is not None
        ):
            return {}
        arrays[name] = tensor.dtype
    return arrays


def is_root_model(spec: Any) -> bool:
    """True for a spec of one value rather than of fields."""
    from _bentoml_sdk.io_models import IORootModel

    return inspect.isclass(spec) and issubclass(spec, IORootModel)


@contextlib.contextmanager
def request_scope(service: Any, request: Any) -> Iterator[Any]:
    """``ctx`` of one call. It may be left from another context than it was entered in."""
    scope = service.context.in_request(request)
    context = scope.__enter__()
    try:
        yield context
    finally:
        with contextlib.suppress(ValueError):
            scope.__exit__(None, None, None)


def hooks(service: Any, kind: str) -> list[str]:
    """The methods that are hooks for ``startup``, ``shutdown`` or ``deployment``."""
    mark = f"__bentoml_{kind}_hook__"
    return [
        name
        for name in dir(service.inner)
        if not name.startswith("__") and getattr(getattr(service.inner, name), mark, False)
    ]


def local_dependencies(service: Any) -> list[Any]:
    """The dependencies that are services of this program, not addresses."""
    return [
        each
        for each in service.dependencies.values()
        if each.on is not None and not each.url and not each.deployment
    ]


def resolve(dependency: Any, instance: object) -> None:
    """From now on, the dependency is this instance."""
    dependency._resolved = instance


def client_of(service: Any, url: str) -> Any:
    """What BentoML gives for a dependency that is a server of its own, at this address.

    Of the two that newer versions have, the one whose clients can be asked for any path.
    """
    from _bentoml_impl.client.proxy import RemoteProxy

    return RemoteProxy(url, service=service, media_type="application/json").as_service()


async def close_dependencies() -> None:
    """Closes the clients of dependencies that are addresses."""
    from _bentoml_sdk.service.dependency import cleanup

    await cleanup()


def announce(service: Any, instance: object) -> None:
    """Answers ``bentoml.get_current_service`` and ``bentoml.server_context``."""
    from _bentoml_sdk.service import set_current_service
    from bentoml._internal.context import server_context

    set_current_service(instance)
    if instance is not None:
        server_context.service_name = service.name
        server_context.service_type = "entry_service"
        server_context.worker_index = 1


def task_status(state: str) -> Any:
    """``ResultStatus`` for ``running``, ``success``, ``failure`` or ``cancelled``."""
    from _bentoml_impl.tasks import ResultStatus

    names = {
        "running": ("IN_PROGRESS",),
        "success": ("COMPLETED", "SUCCESS"),
        "failure": ("FAILED", "FAILURE"),
        "cancelled": ("CANCELED", "CANCELLED"),
    }[state]
    return next(ResultStatus[name] for name in names if name in ResultStatus.__members__)


def rows_of(value: Any, dimension: int) -> int:
    """How many rows an argument of a batchable method has."""
    from bentoml._internal.runner.container import AutoContainer

    return int(AutoContainer.get_batch_size(value, dimension))


def join(values: Sequence[Any], dimension: int) -> tuple[Any, Any]:
    """One value of the rows of all, and where each begins."""
    from bentoml._internal.runner.container import AutoContainer

    joined, places = AutoContainer.batches_to_batch(values, dimension)
    return joined, places


def split(value: Any, places: Any, dimension: int) -> list[Any]:
    """The reverse of ``join``."""
    from bentoml._internal.runner.container import AutoContainer

    return list(AutoContainer.batch_to_batches(value, places, dimension))
