"""A class that ``service`` decorated, as the host executes it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from .context import Context
from .endpoints import EndpointDefinition
from .executable import Ends, IncomingCall, Result
from .metrics import declared
from .options import check_description, resolve_options
from .services import ServiceDefinition
from .signature import Signature


class HostedClass:
    """The service of a class."""

    def __init__(self, definition: ServiceDefinition) -> None:
        self._definition = definition
        self.endpoints: Mapping[str, HostedMethod] = {
            each.name: HostedMethod(definition.name, each) for each in definition.endpoints
        }
        self.manifest: dict[str, Any] = {
            "name": definition.name,
            "endpoints": [each.manifest for each in self.endpoints.values()],
        }
        metrics = declared(definition.metrics, f'service "{definition.name}"')
        if metrics:
            self.manifest["metrics"] = metrics
        if definition.description:
            self.manifest["description"] = definition.description
        self._instance: Any = None

    async def setup(self) -> None:
        """Constructs the class, and calls its ``setup``."""
        self._instance = self._definition.target()
        for endpoint in self.endpoints.values():
            endpoint.bind(self._instance)
        await self._hook("setup")

    async def teardown(self) -> None:
        """Calls its ``teardown``."""
        await self._hook("teardown")

    async def _hook(self, name: str) -> None:
        hook = getattr(self._instance, name, None)
        if callable(hook) and name not in self.endpoints:
            done = hook()
            if inspect.isawaitable(done):
                await done


class HostedMethod:
    """One of its endpoints."""

    def __init__(self, service: str, definition: EndpointDefinition) -> None:
        place = f'service "{service}", endpoint "{definition.name}"'
        function = definition.function
        options = definition.options
        self._name = function.__name__
        self._signature = Signature(function, definition.name, place)
        self.asynchronous = inspect.iscoroutinefunction(function)
        self.manifest: dict[str, Any] = {
            "name": definition.name,
            "kind": definition.kind,
            "input": self._signature.input,
            "files": self._signature.files,
            "output": self._signature.output,
            **resolve_options(definition.kind, options, place),
        }
        if self._signature.output_file is not None:
            self.manifest["outputFile"] = self._signature.output_file
        description = check_description(
            options.get("description") or inspect.getdoc(function), place
        )
        if description:
            self.manifest["description"] = description
        self._method: Any = None
        # What is called for each call: without a branch on the kind of the function.
        self.execute: Callable[[IncomingCall], Result | Awaitable[Result]] = (
            self._execute_on_loop if self.asynchronous else self._execute
        )

    def bind(self, instance: Any) -> None:
        """From now on, calls go to this instance."""
        self._method = getattr(instance, self._name)

    def _execute(self, call: IncomingCall) -> Result:
        return self._signature.write(self._method(**self._read(call)))

    async def _execute_on_loop(self, call: IncomingCall) -> Result:
        return self._signature.write(await self._method(**self._read(call)))

    def execute_batch(self, calls: Sequence[IncomingCall]) -> Ends | Awaitable[Ends]:
        raise NotImplementedError("the endpoint takes no batches")

    def _read(self, call: IncomingCall) -> dict[str, Any]:
        signature = self._signature
        given = signature.read(call)
        if signature.context_name is not None:
            given[signature.context_name] = Context(call)
        return given
