"""Runs a program that is a server of its own: a child of the worker, in its sandbox and its network
namespace. Each connection that the node wants is relayed to the program's port, byte by byte.

It lives as long as the worker: when one ends, so does the other, with all that the program has
started.

States: started, until it answers at its port; serving; stopping, from SIGTERM to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..sdk.executable import Program, ServiceError
from ..sdk.models import model_path

HOSTS = ("127.0.0.1", "::1")
"""Where it may listen: the loopback of its sandbox, or of the machine."""
LOOK_INTERVAL_SECONDS = 0.1
"""Pause between two looks whether it answers, while it starts."""
HEALTH_TIMEOUT_SECONDS = 30.0
"""How long its health may take to answer."""
CONNECT_TIMEOUT_SECONDS = 5.0
"""How long its port may take to accept."""
STOP_TIMEOUT_SECONDS = 10.0
"""How long it may take to end after SIGTERM, before SIGKILL."""
MAX_FIRST_LINE_BYTES = 4096

_MODEL = re.compile(r"\{model:([^{}]*)\}")
"""Stands in a command for the folder of a model."""

_UPGRADED = b"HTTP/1.1 101 "
"""How the first answer on a connection begins if that is a WebSocket, which has one of its own."""

_WATCHDOG = 'read _; kill -KILL -"$1"'
"""A shell that kills the group of the program when the worker has ended, however that came: its
input ends then. A sandbox of the kernel needs none, and mostly has no shell."""


class RunningProgram:
    """A program, from its start to its end. If it ends by itself, ``on_ended`` is told why."""

    def __init__(
        self, program: Program, path: str, *, folder: Path, on_ended: Callable[[str], None]
    ) -> None:
        self._program = program
        self._folder = folder
        self._on_ended = on_ended
        self._name = f'the program "{program.command[0]}" at {path}'
        self._process: asyncio.subprocess.Process | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._port = 0
        self._host = HOSTS[0]
        self._is_stopping = False
        self._upgraded: set[_Side] = set()
        """The node's sides of connections whose WebSocket is open."""

    async def start(self, say: Callable[[str], None]) -> None:
        """Starts it, and returns when it is ready; the node limits how long that may take.

        ``say`` is called with why it is not yet. Raises ``ServiceError`` for a port that is taken,
        and for a program that is not there.
        """
        port = self._program.port
        if port is not None and await _listens_at(port) is not None:
            raise ServiceError(
                f"{self._name} cannot have port {port}: something listens there on this machine; "
                "leave port out, and write {port} in the command, for a free one"
            )
        self._port = _free_port() if port is None else port
        await self._spawn()
        last = ""
        while (said := await self._silence() or await self.fault()) != "":
            if said != last:
                say(said)
                last = said
            await asyncio.sleep(LOOK_INTERVAL_SECONDS)

    @property
    def has_health(self) -> bool:
        """Whether it says by its health that it takes requests."""
        return self._program.health is not None

    async def fault(self) -> str:
        """Why its health takes no requests; empty: it does, or has none."""
        if self._program.health is None:
            return ""
        sick = await asyncio.to_thread(_sickness, self._host, self._port, self._program.health)
        return "" if sick is None else f"{self._name} {sick}"

    async def relay(self, connection: socket.socket) -> None:
        """Joins a connection of the node with one of the program. Raises ``OSError``."""
        loop = asyncio.get_running_loop()
        node, program = _Side(), _Side()
        await loop.create_connection(lambda: program, self._host, self._port)
        node.other, program.other = program, node
        program.on_upgrade = lambda: self._upgraded.add(node)
        node.on_lost = lambda: self._upgraded.discard(node)
        try:
            await loop.create_connection(lambda: node, sock=connection)
        except OSError:
            program.abort()
            raise

    def retire(self, last_bytes: bytes) -> None:
        """Ends its WebSockets with these last bytes, and no other connection."""
        for side in list(self._upgraded):
            side.end(last_bytes)

    async def stop(self) -> None:
        """Returns when it has ended."""
        self._is_stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_SECONDS)
        except asyncio.TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _silence(self) -> str:
        """Why it is not reached at its port; empty: it is."""
        host = await _listens_at(self._port)
        if host is not None:
            self._host = host
            return ""
        where = (
            f"port {self._port}, which {{port}} in its command and the variable PORT name"
            if self._program.port is None
            else f"its port {self._port}"
        )
        return f"{self._name} does not listen on {where}"

    async def _spawn(self) -> None:
        command = [
            _MODEL.sub(
                lambda found: str(model_path(found[1])), each.replace("{port}", str(self._port))
            )
            for each in self._program.command
        ]
        folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        env = {
            **os.environ,
            "PATH": ":".join(each for each in folders if each),
            "PORT": str(self._port),
        }
        try:
            self._process = await asyncio.create_subprocess_exec(
                *_in_environment(command),
                cwd=self._folder,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                # In a group of its own, no signal for the node reaches it.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise ServiceError(
                f"{self._name} is not there, or the program in its first line is not: it is looked "
                "for in the folder of the service, where its path has a slash, and otherwise in "
                "PATH; requirements, packages or an image bring programs"
            ) from error
        except PermissionError as error:
            raise ServiceError(
                f"{self._name} may not be executed: is it a program of this system, and marked as "
                "one (chmod +x)?"
            ) from error
        except OSError as error:
            raise ServiceError(f"{self._name} cannot be started: {error}") from error
        with contextlib.suppress(OSError):
            self._watchdog = subprocess.Popen(
                ["sh", "-c", _WATCHDOG, "sh", str(self._process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._watching = asyncio.create_task(self._watch(self._process))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        if self._is_stopping:
            return
        self._is_stopping = True
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        elif code == 0:
            how = "ended with code 0: it has to stay in the foreground"
        else:
            how = f"ended with code {code}"
        self._on_ended(f"{self._name} {how}")


class _Side(asyncio.Protocol):
    """One of two connections that are joined: what it receives, the other one sends."""

    def __init__(self) -> None:
        self.other: _Side | None = None
        self.on_upgrade: Callable[[], None] | None = None
        """Called where the first bytes open a WebSocket."""
        self.on_lost: Callable[[], None] = lambda: None
        self._beginning = b""
        """The first bytes, as many as say whether it is a WebSocket."""
        self._transport: asyncio.Transport | None = None
        self._early: list[bytes] = []
        """What is to be sent before it is connected."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        for data in self._early:
            transport.write(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if len(self._beginning) < len(_UPGRADED):
            self._beginning += data[: len(_UPGRADED) - len(self._beginning)]
            if self._beginning == _UPGRADED and self.on_upgrade is not None:
                self.on_upgrade()
        if self.other is not None:
            self.other.write(data)

    def eof_received(self) -> bool:
        if self.other is not None:
            self.other.end(b"")
        return True

    def pause_writing(self) -> None:
        if self.other is not None and self.other._transport is not None:
            self.other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other._transport is not None:
            with contextlib.suppress(RuntimeError):  # It is closing.
                self.other._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.on_lost()
        if self.other is not None:
            self.other.abort() if exc is not None else self.other.close()

    def write(self, data: bytes) -> None:
        """Sends it after all that was to be sent before."""
        if self._transport is None:
            self._early.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    def end(self, data: bytes) -> None:
        """Sends the last bytes, and then the end."""
        other, self.other = self.other, None
        self.write(data)
        self.close()
        if other is not None:
            other.close()

    def close(self) -> None:
        """Closes it when all was sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes it at once."""
        if self._transport is not None:
            self._transport.abort()


def _in_environment(command: list[str]) -> list[str]:
    """The command, where its program is a script of the environment: by its interpreter.

    The first line of such a script names another interpreter, or a shell, which a sandbox lacks.
    """
    name = command[0]
    if name in ("python", "python3"):
        return [sys.executable, *command[1:]]
    script = Path(sys.executable).parent / name
    if "/" in name or not script.is_file():
        return command
    with script.open("rb") as opened:
        beginning = opened.read(MAX_FIRST_LINE_BYTES)
    is_python = beginning.startswith(b"#!") and (
        b"python" in beginning.split(b"\n", 1)[0] or b"\n'''exec' " in beginning
    )
    return [sys.executable, str(script), *command[1:]] if is_python else command


def _sickness(host: str, port: int, path: str) -> str | None:
    """What is wrong with how it answers at its health path; None: nothing."""
    asked = http.client.HTTPConnection(host, port, timeout=HEALTH_TIMEOUT_SECONDS)
    try:
        asked.request("GET", path, headers={"connection": "close"})
        status = asked.getresponse().status
    except TimeoutError:
        return f"does not answer {path} within {HEALTH_TIMEOUT_SECONDS:g} s"
    except http.client.RemoteDisconnected as error:
        return f"does not answer {path}: {error}"
    except http.client.HTTPException as error:
        return f"answers {path} with what is not HTTP: {error!r:.200}"
    except OSError as error:
        return f"does not answer {path}: {error}"
    finally:
        asked.close()
    return None if 200 <= status < 300 else f"answers {path} with {status}"


async def _listens_at(port: int) -> str | None:
    """The address at which something accepts at a port; None: nothing does."""
    for host in HOSTS:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            opened = asyncio.open_connection(host, port)
            _, writer = await asyncio.wait_for(opened, CONNECT_TIMEOUT_SECONDS)
            writer.close()
            return host
    return None


def _free_port() -> int:
    with socket.create_server((HOSTS[0], 0)) as server:
        return int(server.getsockname()[1])
