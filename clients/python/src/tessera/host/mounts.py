"""Runs the mounted servers of a service: applications in uvicorn, without a port, and programs.

Where the node wants a connection, it says so, and the worker connects to a Unix socket of the node
in its scratch folder. From then on that connection is one that uvicorn has accepted, or it is
relayed to the port of a program.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from ..sdk.executable import MountedServer, Program, ServiceError
from .joining import joining
from .lingering import lingering
from .programs import RunningProgram

IDLE_CONNECTION_SECONDS = 120
"""Longer than the node keeps a connection, so that the node closes it first."""
SHUTDOWN_SECONDS = 5
CONNECT_SECONDS = 10
"""As long as the node waits for a connection."""
CONNECT_RETRY_SECONDS = 0.01
PING_SECONDS = 30
"""When a WebSocket of a function is pinged, and how long its caller has to answer."""
_ROUTE = b"tessera-route"
"""What an answer says to the node alone."""
_CLIENT = b"x-forwarded-for"
_SCHEME = b"x-forwarded-proto"
"""What a request says of its caller: one of each, by the node."""
RESTART_FRAME = b"\x88\x02\x03\xf4"
"""A close frame (RFC 6455, section 5.5.1) with the code 1012: the service restarts."""


class Mounts:
    """The servers of one service, by their index in its manifest, and programs that it calls.

    ``on_ended`` is called with why, when a program has ended, which ends the worker.
    """

    def __init__(
        self,
        mounts: Sequence[MountedServer],
        scratch: Path,
        *,
        folder: Path,
        on_ended: Callable[[str], None],
        programs: Sequence[tuple[str, Program]] = (),
    ) -> None:
        def serve(mounted: MountedServer, socket_path: Path) -> _Server | _ProgramServer:
            if mounted.program is None:
                return _Server(mounted, socket_path)
            path = str(mounted.manifest["path"])
            program = RunningProgram(mounted.program, path, folder=folder, on_ended=on_ended)
            if mounted.stands_before_program:
                return _Server(mounted, socket_path, program)
            return _ProgramServer(program, socket_path)

        self._servers = [
            serve(each, scratch / f"mount-{index}") for index, each in enumerate(mounts)
        ]
        self._programs = [
            RunningProgram(program, name, folder=folder, on_ended=on_ended)
            for name, program in programs
        ]
        self._connecting: set[asyncio.Task[None]] = set()

    async def start(self, say: Callable[[str], None]) -> None:
        """Begins the lifespan of each, and starts programs, until they are ready.

        ``say`` is called with what is not. Raises ``ServiceError`` for what does not start.
        """
        for program in self._programs:
            await program.start(say)
        for server in self._servers:
            await server.start(say)

    @property
    def health(self) -> Callable[[], Awaitable[str]] | None:
        """What keeps programs from taking requests; None where none says it."""
        all_programs = [*self._programs, *(each.program for each in self._servers)]
        programs = [each for each in all_programs if each is not None and each.has_health]

        async def fault() -> str:
            for each in programs:
                if (said := await each.fault()) != "":
                    return said
            return ""

        return fault if programs else None

    def connect(self, index: int) -> None:
        """Connects to the node once more for a server."""
        task = asyncio.ensure_future(self._servers[index].connect())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def retire(self) -> None:
        """Ends WebSockets with the code 1012. Others end with the last request of the node."""
        for server in self._servers:
            server.retire()

    async def stop(self) -> None:
        """Ends the lifespans, the last one first."""
        self.retire()
        for server in reversed(self._servers):
            await server.stop()
        for program in self._programs:
            await program.stop()


class _Server:
    def __init__(
        self, mounted: MountedServer, socket_path: Path, program: RunningProgram | None = None
    ) -> None:
        self.program = program
        """What the application sends requests on to."""
        self._mounted = mounted
        self._path = str(mounted.manifest["path"])
        self._socket_path = str(socket_path)
        self._config: Any = None
        self._state: Any = None
        self._lifespan: Any = None

    async def start(self, say: Callable[[str], None]) -> None:
        if self.program is not None:
            await self.program.start(say)
        try:
            import uvicorn
            from uvicorn.server import ServerState
        except ImportError as error:
            raise ServiceError(
                f"the server at {self._path} runs in uvicorn, which is not in the environment of "
                "the service: add uvicorn[standard] to its requirements"
            ) from error
        app = self._mounted.application()
        if not callable(app):
            raise ServiceError(f"the server at {self._path} is no ASGI application, but {app!r}")
        max_message = self._mounted.max_message
        self._config = uvicorn.Config(
            _below(app, self._path),
            # Chosen already: that of the worker.
            loop="none",
            lifespan="auto" if max_message is None else "off",
            log_config=None,
            access_log=False,
            # The application is told what the node says, below.
            proxy_headers=False,
            # The node says it.
            date_header=False,
            timeout_keep_alive=IDLE_CONNECTION_SECONDS,
            **({} if max_message is None else _of_function(max_message)),
        )
        self._config.load()
        self._config.http_protocol_class = joining(self._config.http_protocol_class)
        if max_message is not None:
            if self._config.ws_protocol_class is None:
                raise ServiceError(
                    f"the WebSocket at {self._path} needs a library for it, which is not in the "
                    "environment of the service: add uvicorn[standard] to its requirements"
                )
            self._config.ws_protocol_class = lingering(self._config.ws_protocol_class)
        self._state = ServerState()
        self._state.default_headers = list(self._config.encoded_headers)
        self._lifespan = self._config.lifespan_class(self._config)
        await self._lifespan.startup()
        if self._lifespan.should_exit:
            raise ServiceError(f"the lifespan of the server at {self._path} failed to start")

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        connection = await connected(self._socket_path)
        if connection is not None:
            await loop.connect_accepted_socket(self._protocol, connection)

    def retire(self) -> None:
        for connection in list(self._state.connections if self._state else ()):
            # A connection that is kept may have the next request on its way.
            if not isinstance(connection, self._config.http_protocol_class):
                with contextlib.suppress(Exception):
                    connection.shutdown()

    async def stop(self) -> None:
        if self._lifespan is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._lifespan.shutdown(), SHUTDOWN_SECONDS)
        if self.program is not None:
            await self.program.stop()

    def _protocol(self) -> Any:
        return self._config.http_protocol_class(
            config=self._config, server_state=self._state, app_state=self._lifespan.state
        )


class _ProgramServer:
    def __init__(self, program: RunningProgram, socket_path: Path) -> None:
        self.program = program
        self._socket_path = str(socket_path)

    async def start(self, say: Callable[[str], None]) -> None:
        await self.program.start(say)

    async def connect(self) -> None:
        connection = await connected(self._socket_path)
        if connection is not None:
            try:
                await self.program.relay(connection)
            except OSError:  # It takes no connections; the node hears that by this one's end.
                connection.close()

    def retire(self) -> None:
        self.program.retire(RESTART_FRAME)

    async def stop(self) -> None:
        await self.program.stop()


async def connected(socket_path: str) -> socket.socket | None:
    """A connection to the node; None where it has ended, or gave up waiting.

    Tries again where as many connections wait for the node as the kernel lets. Not by the event
    loop, which takes such a one for a connection that is under way.
    """
    until = time.monotonic() + CONNECT_SECONDS
    while time.monotonic() < until:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.connect(socket_path)
        except BlockingIOError:
            connection.close()
            await asyncio.sleep(CONNECT_RETRY_SECONDS)
        except OSError:
            connection.close()
            return None
        else:
            return connection
    return None


def _of_function(max_message: int) -> dict[str, Any]:
    """What uvicorn holds a function's WebSocket to.

    Of messages that wait, it keeps two, or what it has read at once: compressed ones could unfold.
    """
    return {
        "ws_max_size": max_message,
        "ws_max_queue": 1,
        "ws_ping_interval": PING_SECONDS,
        "ws_ping_timeout": PING_SECONDS,
        "ws_per_message_deflate": False,
    }


def _below(app: Any, path: str) -> Any:
    """The application, which is told where it is mounted (``root_path`` of ASGI), and who calls it
    by which scheme, as the node says: nobody else connects.

    Its answers say which of its routes they are of, for the metrics of the node.
    """
    root = "" if path == "/" else path

    async def mounted(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            await app(scope, receive, send)
            return
        # The scope is uvicorn's own, of this request alone.
        if root:
            scope["root_path"] = scope.get("root_path", "") + root
        for name, value in scope["headers"]:
            if name == _CLIENT:
                scope["client"] = (value.decode("latin-1"), 0)
            elif name == _SCHEME:
                scheme = value.decode("latin-1")
                scope["scheme"] = scheme if kind == "http" else scheme.replace("http", "ws")
        head = "http.response.start" if kind == "http" else "websocket.accept"

        async def say(message: MutableMapping[str, Any]) -> None:
            if message["type"] == head and (route := _route(scope)) is not None:
                message = {**message, "headers": [*message.get("headers", ()), (_ROUTE, route)]}
            await send(message)

        await app(scope, receive, say)

    return mounted


def _route(scope: MutableMapping[str, Any]) -> bytes | None:
    """The template of the route that Starlette or FastAPI has chosen, from the root of the host.

    None where nothing tells it, or where it is below a path that callers choose.
    """
    route = scope.get("route")
    # Newer versions of FastAPI have the whole path of an included router's route there.
    effective = scope.get("fastapi", {}).get("effective_route_context") or route
    path = getattr(effective, "path_format", None)
    if not isinstance(path, str):
        return None
    params = scope.get("path_params", {})
    if path.endswith("/{path}") and "path" not in params:
        # A mount, which is part of the root path already.
        path = "/{path}"
    if any(f"{{{name}}}" not in path for name in params):
        return None
    template = f"{scope['root_path']}{path}"
    return template.encode() if template.isascii() else None
