"""A class that ``service`` decorated, as the host executes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .endpoints import ENDPOINT, EndpointDefinition
from .executable import PROGRAM_PROCESSES, Executable, Program, ServiceError
from .hosted_batch import HostedBatch
from .hosted_method import HostedMethod, HostedStream
from .metrics import declared
from .mounts import ClassMount
from .options import check_description, resolve_options
from .services import ServiceDefinition


class HostedClass:
    """The service of a class."""

    def __init__(self, definition: ServiceDefinition) -> None:
        self._definition = definition
        self._hosted = {each.name: _host(definition.name, each) for each in definition.endpoints}
        self.endpoints: Mapping[str, Executable] = self._hosted
        self.manifest: dict[str, Any] = {
            "name": definition.name,
            **definition.placement,
            "endpoints": [each.manifest for each in self._hosted.values()],
        }
        if definition.ready_timeout_ms is not None:
            self.manifest["readyTimeoutMs"] = definition.ready_timeout_ms
        at = f'service "{definition.name}"'
        self.mounts = [ClassMount(mount, manifest, at) for mount, manifest in definition.mounts]
        if definition.processes is not None:
            self.manifest["processes"] = definition.processes
        elif any(each.program is not None for each in self.mounts):
            self.manifest["processes"] = PROGRAM_PROCESSES
        self.manifest.update(definition.gpus)
        if definition.packages:
            self.manifest["packages"] = list(definition.packages)
        if definition.image:
            self.manifest["image"] = definition.image
        if definition.models:
            self.manifest["models"] = dict(definition.models)
        if definition.description:
            self.manifest["description"] = definition.description
        metrics = declared(definition.metrics, at)
        if metrics:
            self.manifest["metrics"] = metrics
        if self.mounts:
            self.manifest["mounts"] = [dict(each.manifest) for each in self.mounts]
        self.programs: Sequence[tuple[str, Program]] = ()
        self._instance: Any = None

    @property
    def ready(self) -> Callable[[], Any] | None:
        """Its ``ready``, if it has one: whether it may take calls."""
        return self._hook("ready")

    async def setup(self) -> None:
        """Constructs the class, and calls its ``setup``."""
        self._instance = self._definition.target()
        for endpoint in self._hosted.values():
            endpoint.bind(self._instance)
        for mount in self.mounts:
            mount.instance = self._instance
        await _call(self._hook("setup"))

    async def teardown(self) -> None:
        """Calls its ``teardown``."""
        await _call(self._hook("teardown"))

    def _hook(self, name: str) -> Callable[[], Any] | None:
        hook = getattr(self._instance, name, None)
        return hook if callable(hook) and not hasattr(hook, ENDPOINT) else None


async def _call(hook: Callable[[], Any] | None) -> None:
    done = None if hook is None else hook()
    if inspect.isawaitable(done):
        await done


def _host(service: str, definition: EndpointDefinition) -> HostedMethod | HostedBatch:
    try:
        return _hosted(service, definition)
    except ServiceError as error:
        error.function = definition.function
        raise


def _hosted(service: str, definition: EndpointDefinition) -> HostedMethod | HostedBatch:
    place = f'service "{service}", endpoint "{definition.name}"'
    function, options = definition.function, definition.options
    about = check_description(options.get("description") or inspect.getdoc(function), place)
    manifest: dict[str, Any] = {
        "name": definition.name,
        "kind": definition.kind,
        **resolve_options(definition.kind, options, place),
    }
    if about:
        manifest["description"] = about
    batch = options.get("batch")
    if batch is not None:
        return HostedBatch(function, batch, manifest, place)
    streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    hosted = HostedStream if streams else HostedMethod
    return hosted(function, manifest, place)
