"""Hosts a BentoML service as it is written.

Nothing of BentoML's server runs: the node does what that did. What is used of BentoML beyond its
documentation stands in ``internals``.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from pydantic.errors import PydanticUserError

from ..sdk.executable import (
    Executable,
    HostedService,
    Json,
    MountedServer,
    Program,
    ServiceError,
)
from . import internals
from .dependencies import Dependency
from .endpoint import BentoEndpoint
from .manifest import (
    concurrency_of,
    gpus_of,
    models_of,
    service_manifest,
    threads_of,
    timeout_of,
)
from .middlewares import MethodBehind, Middlewares
from .mounts import mounts_of, program_of
from .turns import Turns
from .unsupported import refuse_unsupported, refuse_version


def adapt(service: Any) -> HostedService:
    """Adapts what ``@bentoml.service`` made. Raises ``ServiceError`` for what cannot be hosted."""
    refuse_version()
    refuse_unsupported(service)
    for each in _all(service):
        _set_variables(each)
    return BentoService(service)


class BentoService:
    """A service with those that it depends on, all in this process."""

    def __init__(self, service: Any) -> None:
        self._service = service
        config = internals.configured(service)
        self._turns = Turns(threads_of(config))
        middlewares = Middlewares(service) if service.middlewares else None
        methods = [self._method(name, config) for name in service.apis]
        self._methods: Sequence[BentoEndpoint | MethodBehind] = (
            methods
            if middlewares is None
            else [MethodBehind(each, middlewares) for each in methods]
        )
        self.endpoints: Mapping[str, Executable] = {
            str(each.manifest["name"]): each for each in self._methods
        }
        self._page_concurrency = concurrency_of(config)
        self.mounts: Sequence[MountedServer] = mounts_of(
            service,
            timeout_seconds=timeout_of(config),
            concurrency=self._page_concurrency,
        )
        self.manifest: Mapping[str, Json] = service_manifest(
            service,
            [each.manifest for each in self._methods],
            config,
            # Those that it depends on run in its process.
            gpus=max(gpus_of(internals.configured(each)) for each in _all(service)),
            models=models_of(_all(service)),
            mounts=[each.manifest for each in self.mounts],
        )
        self._started: list[tuple[Any, Any]] = []
        """Services and their instances, in the order of their start."""
        self._dependencies: dict[str, Any] = {}
        self.programs: list[tuple[str, Program]] = []
        self._clients: list[Any] = []
        """Of the commands that it depends on."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._background: set[asyncio.Task[None]] = set()

    def _method(self, name: str, config: Mapping[str, Any]) -> BentoEndpoint:
        try:
            return BentoEndpoint(
                self._service, name, config=config, turns=self._turns, later=self._later
            )
        except PydanticUserError as error:
            said = str(error).splitlines()[0]
            raise ServiceError(f"{self._service.name}.{name}: its types: {said}") from error

    @property
    def ready(self) -> Callable[[], Any] | None:
        """``__is_ready__`` of all services in this process; None where none has one."""
        asked = [each for _, each in self._started if hasattr(each, "__is_ready__")]

        async def all_ready() -> bool:
            return all([await _is_ready(each) for each in asked])

        # What its author is told that was asked.
        all_ready.__name__ = "__is_ready__"
        return all_ready if asked else None

    async def setup(self) -> None:
        """Constructs the class, after those that it depends on, and runs the hooks of each."""
        self._loop = asyncio.get_running_loop()
        instance = await self._start(self._service, {})
        for method in self._methods:
            method.bind(instance)
        internals.announce(self._service, instance)
        internals.start_pages(self._service, self._page_concurrency)

    async def teardown(self) -> None:
        """Runs the hooks for shutdown, in the reverse order of the start."""
        if self._background:
            await asyncio.wait(self._background)
        for service, instance in reversed(self._started):
            await _run_hooks(service, instance, "shutdown")
        self._started.clear()
        for client in self._clients:
            await client.close()
        await internals.close_dependencies()
        internals.announce(self._service, None)

    async def _start(self, service: Any, instances: dict[str, Any]) -> Any:
        if service.name not in instances:
            for dependency in internals.local_dependencies(service):
                internals.resolve(dependency, await self._depended(dependency.on, instances))
            # Once per process: the node starts each by itself.
            await _run_hooks(service, service.inner, "deployment")
            instances[service.name] = _construct(service)
            self._started.append((service, instances[service.name]))
            await _run_hooks(service, instances[service.name], "startup")
        return instances[service.name]

    async def _depended(self, service: Any, instances: dict[str, Any]) -> Any:
        """The service for those who depend on it: one for all of them, so that they meet."""
        if service.name not in self._dependencies:
            instance = await self._start(service, instances)
            if internals.has_command(service):
                program = program_of(service, instance)
                self.programs.append((service.name, program))
                if not service.apis:
                    client = internals.client_of(service, f"http://127.0.0.1:{program.port}")
                    self._clients.append(client)
                    self._dependencies[service.name] = client
                    return client
            turns = Turns(threads_of(internals.configured(service)))
            loop = asyncio.get_running_loop()
            self._dependencies[service.name] = Dependency(
                service, instance, turns=turns, loop=loop, later=self._later
            )
        return self._dependencies[service.name]

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs what a method left to be done after its answer. Safe to call from any thread."""

        def begin() -> None:
            task = asyncio.ensure_future(work)
            self._background.add(task)
            task.add_done_callback(self._background.discard)

        if self._loop is not None:
            self._loop.call_soon_threadsafe(begin)


def _all(service: Any) -> Iterable[Any]:
    """The service, and those that it depends on."""
    found: Iterable[Any] = service.all_services().values()
    return found


def _construct(service: Any) -> Any:
    try:
        return service()
    except NameError as error:
        hint = "is a package missing that it imports within bentoml.importing()?"
        raise ServiceError(f"{service.name}: {error}: {hint}") from error


async def _is_ready(instance: Any) -> bool:
    # As BentoML asks: in a thread, unless it is async; whatever is true means yes.
    if inspect.iscoroutinefunction(instance.__is_ready__):
        return bool(await instance.__is_ready__())
    return bool(await asyncio.to_thread(instance.__is_ready__))


async def _run_hooks(service: Any, owner: Any, kind: str) -> None:
    for name in internals.hooks(service, kind):
        done = getattr(owner, name)()
        if inspect.isawaitable(done):
            await done


def _set_variables(service: Any) -> None:
    """Sets the variables that the service declares. A variable of the environment goes first."""
    for each in service.envs:
        if each.name in os.environ:
            continue
        if not each.value:
            raise ServiceError(
                f"{service.name}: the variable {each.name} is not set, "
                "and envs of the service has no value for it"
            )
        os.environ[each.name] = each.value
