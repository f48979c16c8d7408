"""The servers of a BentoML service: ASGI and WSGI applications, Gradio pages, and its command.

Applications are put together as BentoML's own server does it: one application for what is mounted
at the root, in the order of its mounts, and one for each path below.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette

from ..sdk.executable import Json, MountedServer, Program, ServiceError
from ..sdk.mounts import MAX_PATH_CHARACTERS, is_path
from . import internals


class BentoMount(MountedServer):
    """What is mounted at one path."""

    def __init__(
        self, service: Any, parts: Sequence[tuple[str, Any]], manifest: Mapping[str, Json]
    ) -> None:
        super().__init__(manifest)
        self._service = service
        self._parts = parts

    def application(self) -> Any:
        """The applications, with what BentoML puts around them."""
        is_root = self.manifest["path"] == "/"
        # Below a path, that is a part of the root path already.
        parts = [(path if is_root else "", app) for path, app in self._parts]
        return Starlette(
            routes=[internals.passive_mount(path, app) for path, app in parts],
            middleware=internals.middleware(self._service),
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Any) -> AsyncIterator[Any]:
        async with contextlib.AsyncExitStack() as stack:
            for _, app in self._parts:
                await internals.enter_lifespan(app, stack)
            yield


class BentoCommand(MountedServer):
    """The command of a service, a program with a port of its own."""

    def __init__(self, service: Any, manifest: Mapping[str, Json]) -> None:
        super().__init__(manifest)
        self._service = service

    @property
    def is_program(self) -> bool:
        return True

    @property
    def program(self) -> Program:
        """The program, as the instance says."""
        return program_of(self._service)


class BentoCommandBehind(BentoMount):
    """The command of a service behind its middlewares and applications, and BentoML's proxy."""

    @property
    def program(self) -> Program:
        """The program, as the instance says."""
        return program_of(self._service)

    @property
    def is_program(self) -> bool:
        return False

    @property
    def stands_before_program(self) -> bool:
        return True

    def application(self) -> Any:
        """The applications, and behind them the proxy."""
        self._parts = [*self._parts, ("/", internals.proxy(self._service))]
        return super().application()


def program_of(service: Any, instance: Any = None) -> Program:
    """The command of a service, as its instance says; None: the one that was announced."""
    command, port, health = internals.command_of(service, instance)
    return Program(tuple(command), port, health)


def mounts_of(service: Any, *, timeout_seconds: float, concurrency: int) -> list[MountedServer]:
    """The servers of a service. Raises ``ServiceError`` for a path that cannot be."""
    limits = {"timeoutMs": round(timeout_seconds * 1_000), "concurrency": concurrency}
    parts = [(_checked(path, service), app) for path, app in internals.mounted(service)]
    at_root = any(path == "/" for path, _ in parts)
    groups: dict[str, list[tuple[str, Any]]] = {}
    for path, app in parts:
        groups.setdefault("/" if at_root else path, []).append((path, app))
    mounts: list[MountedServer] = [
        BentoMount(service, group, {"path": path, **limits}) for path, group in groups.items()
    ]
    if not internals.has_command(service):
        return mounts
    if at_root or service.middlewares:
        return [BentoCommandBehind(service, parts, {"path": "/", **limits})]
    return [*mounts, BentoCommand(service, {"path": "/", **limits})]


def _checked(path: str, service: Any) -> str:
    bare = "/" + path.strip("/")
    if not is_path(bare):
        raise ServiceError(
            f"{service.name}: an application cannot be mounted at {path!r}: it must begin with one "
            f"slash, and have no line breaks and none of ?#{{}}\\, in at most "
            f"{MAX_PATH_CHARACTERS} characters"
        )
    return bare
