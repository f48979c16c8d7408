"""``mount``: what a service may have, and what it is refused for."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from tessera import api, mount, service
from tessera.host.mounts import Mounts, connected
from tessera.host.programs import RunningProgram
from tessera.sdk.executable import Program, ServiceError
from tessera.sdk.hosted import HostedClass
from tessera.sdk.services import definition_of


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Never called: nobody connects."""


def hosted(target: type) -> HostedClass:
    definition = definition_of(service(target))
    assert definition is not None
    return HostedClass(definition)


def test_a_service_may_have_servers_and_no_endpoints() -> None:
    class Pages:
        root = mount("/", app, metrics="/metrics?all", openapi="/doc")
        ui = mount("/ui", app, timeout="5m", concurrency=1_000, concurrency_per_key=2)

    assert hosted(Pages).manifest["mounts"] == [
        {
            "path": "/",
            "timeoutMs": 60_000,
            "concurrency": 100,
            "metrics": "/metrics?all",
            "openapi": "/doc",
        },
        {
            **{"path": "/ui", "timeoutMs": 300_000, "concurrency": 1_000},
            "byKey": {"concurrency": 2},
        },
    ]


def test_their_requests_may_be_queued_with_the_options_of_tasks() -> None:
    class Pages:
        root = mount("/", app, queue=True)
        ui = mount(
            "/ui",
            app,
            queue={"timeout": "1h", "retries": 3, "backoff": "2s", "headers": ["X-Tenant"]},
        )

    defaults = {"retentionMs": 86_400_000, "queueLimit": 10_000, "priority": 0}
    assert [each["queue"] for each in hosted(Pages).manifest["mounts"]] == [
        {
            **defaults,
            "timeoutMs": 600_000,
            "headers": [],
            "retries": {"max": 0, "backoffMs": 1_000},
        },
        {
            **defaults,
            "timeoutMs": 3_600_000,
            "headers": ["x-tenant"],
            "retries": {"max": 3, "backoffMs": 2_000},
        },
    ]


@pytest.mark.parametrize(
    ("path", "queue", "said"),
    [
        ("/", "yes", "queue must be True, or a dict of options"),
        ("/", {"retry": 1}, "queue has no option retry; did you mean retries?"),
        ("/", {"retries": -1}, "retries"),
        ("/" + "a" * 63, True, "at most 63 characters"),
    ],
)
def test_a_wrong_queue_is_refused_by_name(path: str, queue: Any, said: str) -> None:
    class Pages:
        root = mount(path, app, queue=queue)

    with pytest.raises(ServiceError, match=said):
        hosted(Pages)


def test_without_servers_the_manifest_says_nothing_of_them() -> None:
    class Plain:
        @api
        def call(self) -> int:
            return 1

    assert "mounts" not in hosted(Plain).manifest


def test_a_method_makes_the_application_of_the_instance() -> None:
    class Pages:
        def __init__(self) -> None:
            self.made = app

        @mount("/ui")
        def pages(self) -> Any:
            return self.made

    pages = hosted(Pages)
    asyncio.run(pages.setup())
    assert pages.mounts[0].application() is app


def test_a_class_below_has_the_servers_of_its_base() -> None:
    class Base:
        root = mount("/", app)

    class Below(Base):
        ui = mount("/ui", app)

    assert [each["path"] for each in hosted(Below).manifest["mounts"]] == ["/", "/ui"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: mount("ui", app), "not at 'ui'"),
        (lambda: mount("/ui/", app), "not at '/ui/'"),
        (lambda: mount("/a#b", app), "not at '/a#b'"),
        (lambda: mount("/" + "x" * 300, app), "a server is mounted at"),
        (lambda: mount("/ui"), "has no application"),
        (lambda: mount("/", app, timeout="2d"), "timeout must be"),
        (lambda: mount("/", app, concurrency=10_001), "concurrency must be"),
        (lambda: mount("/", app, concurrency_per_key=0), "concurrency_per_key must be"),
        (lambda: mount("/", app, rate_per_key="10/week"), "rate_per_key must be"),
        (lambda: mount("/", app, metrics="metrics"), "metrics must be a path"),
        (lambda: mount("/", app, metrics="/a b"), "metrics must be a path"),
        (lambda: mount("/", app, openapi="doc"), "openapi must be a path"),
        (lambda: mount("/", app, openapi=cast("Any", True)), "openapi must be a path"),
    ],
)
def test_wrong_options_are_refused_by_name(made: Any, said: str) -> None:
    with pytest.raises(ServiceError, match=said):
        hosted(type("Pages", (), {"root": made()}))


def test_two_servers_at_one_path_are_refused() -> None:
    with pytest.raises(ServiceError, match="two servers are mounted at /"):
        hosted(type("Pages", (), {"a": mount("/", app), "b": mount("/", app)}))


def test_an_application_and_a_method_together_are_refused() -> None:
    with pytest.raises(ServiceError, match="decorates a method"):
        mount("/", app)(lambda self: app)


def test_without_uvicorn_it_is_said_what_to_add(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    pages = hosted(type("Pages", (), {"root": mount("/", app)}))
    with pytest.raises(ServiceError, match=r"add uvicorn\[standard\] to its requirements"):
        asyncio.run(_mounts(pages, tmp_path).start(lambda _: None))


def test_a_program_may_start_processes_and_is_no_application() -> None:
    class Assistant:
        model = mount("/v1", command=["serve", "--port", "{port}"], health="/health", timeout="5m")

    assistant = hosted(Assistant)
    assert assistant.manifest["mounts"] == [
        {"path": "/v1", "timeoutMs": 300_000, "concurrency": 100}
    ]
    assert assistant.manifest["processes"] == 64
    assert assistant.mounts[0].program == Program(("serve", "--port", "{port}"), None, "/health")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"command": "vllm serve"}, "command must be a list of texts"),
        ({"command": []}, "command must be a list of texts"),
        ({"command": ["a\0b"]}, "without NUL"),
        ({"command": ["a", "x" * 10_000]}, "of at most 8192 bytes"),
        ({"command": ["a"], "port": 0}, "port must be a whole number from 1 to 65,535"),
        ({"command": ["a"], "port": 70_000}, "port must be a whole number from 1 to 65,535"),
        ({"command": ["a"], "health": "well"}, "health must be a path"),
        ({"port": 80}, "command must be a list of texts"),
        ({"app": app, "command": ["a"]}, "an application and a program"),
    ],
)
def test_a_wrong_program_is_refused_by_name(options: Any, said: str) -> None:
    with pytest.raises(ServiceError, match=said):
        hosted(type("Pages", (), {"root": mount("/", **options)}))


ECHO = """
import os, socketserver, sys

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())
            if line == b"die\\n":
                os._exit(3)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_connections_are_relayed_to_a_program_until_it_ends(tmp_path: Path) -> None:
    async def run() -> tuple[list[bytes], list[str]]:
        ended: list[str] = []
        program = RunningProgram(
            Program(("python", "-c", ECHO, "{port}")), "/", folder=tmp_path, on_ended=ended.append
        )
        await program.start(lambda _: None)
        assert await program.fault() == ""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        await program.relay(theirs)
        reader, writer = await asyncio.open_connection(sock=ours)
        large = b"x" * 1_000_000 + b"\n"
        writer.write(large)
        said = [await reader.readexactly(len(large))]
        # What opens a WebSocket stands here in the midst of another answer.
        writer.write(b"HTTP/1.1 101 x\n")
        said.append(await reader.readline())
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        await program.relay(theirs)
        live, opened = await asyncio.open_connection(sock=ours)
        opened.write(b"HTTP/1.1 101 y\n")
        said.append(await live.readline())
        program.retire(b"last")
        said.append(await live.read())
        writer.write(b"more\n")
        said.append(await reader.readline())
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        await program.relay(theirs)
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.write(b"die\n")
        said.append(await reader.read())
        while not ended:
            await asyncio.sleep(0.01)
        return said, ended

    said, ended = asyncio.run(run())
    assert said[0] == b"X" * 1_000_000 + b"\n"
    assert said[1:] == [
        *(b"HTTP/1.1 101 X\n", b"HTTP/1.1 101 Y\n"),
        *(b"last", b"MORE\n", b"DIE\n"),
    ]
    assert ended == ['the program "python" at / ended with code 3']


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("nowhere-to-be-found",), "is not there, or the program in its first line is not"),
        (("./app.py",), "may not be executed"),
    ],
)
def test_a_program_that_cannot_be_started_is_refused(
    tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    (tmp_path / "app.py").write_text("")
    program = RunningProgram(Program(command), "/", folder=tmp_path, on_ended=pytest.fail)
    with pytest.raises(ServiceError, match=said):
        asyncio.run(program.start(lambda _: None))


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        program = RunningProgram(
            Program(("python", "-V"), port), "/", folder=tmp_path, on_ended=pytest.fail
        )
        with pytest.raises(ServiceError, match=f"cannot have port {port}"):
            asyncio.run(program.start(lambda _: None))


def _mounts(of: HostedClass, folder: Path) -> Mounts:
    return Mounts(of.mounts, folder, folder=folder, on_ended=pytest.fail)


def test_connects_however_few_connections_may_wait_for_the_node(tmp_path: Path) -> None:
    async def connect() -> None:
        path = str(tmp_path / "socket")
        accepted = []
        server = await asyncio.start_unix_server(
            lambda _reader, writer: accepted.append(writer), path, backlog=1
        )
        async with server:
            connections = await asyncio.gather(*(connected(path) for _ in range(50)))
            while len(accepted) < len(connections):
                await asyncio.sleep(0)
            for each in connections:
                assert each is not None
                assert each.getpeername() == path
                each.close()

    asyncio.run(asyncio.wait_for(connect(), 10))


def test_does_not_wait_for_a_node_that_has_ended(tmp_path: Path) -> None:
    assert asyncio.run(connected(str(tmp_path / "socket"))) is None
