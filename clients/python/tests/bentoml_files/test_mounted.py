"""Applications, WebSockets and commands answer as under ``bentoml serve``."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bentoml
import httpx
import pytest

from serving import bentoml_serve, tessera_serve

pytestmark = pytest.mark.skipif(
    "TESSERA_COMMAND" not in os.environ, reason="TESSERA_COMMAND names no server"
)

OWN = {
    *("date", "server", "connection", "keep-alive", "transfer-encoding"),
    *("tessera-worker", "x-request-id"),
}
"""Headers of one connection or moment, and of either server."""

MOUNTED: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/hello", {"params": {"who": "Ada"}}),
    ("GET", "/v1/began", {}),
    ("POST", "/v1/items", {"json": {"a": "ü"}}),
    ("POST", "/v1/items", {"content": b"{"}),
    ("GET", "/v1/refuses", {}),
    ("GET", "/v1/stream", {}),
    ("PUT", "/v1/hello", {}),
    ("GET", "/v1/openapi.json", {}),
    ("GET", "/bare/deep/down", {"params": {"a": "1"}}),
    ("DELETE", "/bare/x", {}),
    ("GET", "/bare", {}),
    ("GET", "/an%20odd//path%20100%25/deep%20down", {}),
    ("POST", "/old/x", {"content": b"body"}),
]

ROOTED: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/", {}),
    ("GET", "/both", {}),
    ("GET", "/own", {}),
    ("GET", "/below/own", {}),
    ("GET", "/below", {}),
    ("GET", "/missing", {}),
    ("POST", "/own", {}),
]

COMMANDED: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/", {}),
    ("GET", "/deep/path", {"params": {"q": "a b", "r": "1"}}),
    ("POST", "/x", {"content": b"a body"}),
    ("DELETE", "/x", {}),
    ("GET", "/missing", {}),
]

BEHIND: list[tuple[str, str, dict[str, Any]]] = [
    *COMMANDED,
    ("GET", "/own", {}),
    ("POST", "/own", {"content": b"a body"}),
    ("GET", "/own", {"params": {"refuse": "1"}}),
    ("GET", "/x", {"params": {"refuse": "1"}}),
]

Both = tuple[httpx.Client, httpx.Client]


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both("mounted.py:Mounted", tmp_path_factory)


@pytest.fixture(scope="module")
def rooted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both("rooted.py:Rooted", tmp_path_factory)


def both(target: str, folders: pytest.TempPathFactory) -> Iterator[Both]:
    with (
        bentoml_serve(target, folders.mktemp("theirs")) as theirs,
        tessera_serve(target, folders.mktemp("ours")) as ours,
    ):
        yield ours, theirs


@pytest.mark.parametrize(("method", "path", "options"), MOUNTED)
def test_applications_below_paths_answer_the_same(
    mounted: Both, method: str, path: str, options: dict[str, Any]
) -> None:
    if path == "/v1/began" and bentoml.__version__.startswith("1.3."):
        pytest.skip("it begins no lifespans yet")
    compare(mounted, method, path, options)


@pytest.mark.parametrize(("method", "path", "options"), ROOTED)
def test_applications_at_the_root_answer_the_same(
    rooted: Both, method: str, path: str, options: dict[str, Any]
) -> None:
    compare(rooted, method, path, options)


def test_methods_go_before_applications(mounted: Both) -> None:
    answers = [client.post("/double", json={"number": 4}) for client in mounted]
    assert [(each.status_code, each.content) for each in answers] == [(200, b"8")] * 2


def test_web_sockets_answer_the_same(mounted: Both) -> None:
    from websockets.sync.client import connect

    said = []
    for client in mounted:
        address = f"{client.base_url}".rstrip("/").replace("http", "ws", 1)
        with connect(f"{address}/v1/socket") as opened:
            opened.send("hello")
            said.append(opened.recv(timeout=10))
    assert said == ["the instance: hello"] * 2


@pytest.mark.skipif(bentoml.__version__.startswith("1.3."), reason="it has no commands yet")
def test_commands_answer_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, queries = [], []
    for number, serve in enumerate((bentoml_serve, tessera_serve)):
        with socket.create_server(("127.0.0.1", 0)) as free:
            monkeypatch.setenv("COMMANDED_PORT", str(free.getsockname()[1]))
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve("commanded.py:Commanded", folder) as client:
            answers.append([shown(client, *each) for each in COMMANDED])
            # BentoML's proxy encodes percent signs once more.
            told = client.get("/x", params={"q": "ü"}).text.removeprefix("GET /x?q=")
            queries.append(told.removesuffix(" b''"))
    assert answers[0] == answers[1]
    assert queries == ["%25C3%25BC", "%C3%BC"]


@pytest.mark.skipif(bentoml.__version__.startswith("1.3."), reason="it has no commands yet")
def test_commands_answer_the_same_behind_middlewares_and_applications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for number, serve in enumerate((bentoml_serve, tessera_serve)):
        with socket.create_server(("127.0.0.1", 0)) as free:
            monkeypatch.setenv("COMMANDED_PORT", str(free.getsockname()[1]))
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve("commanded_behind.py:Commanded", folder) as client:
            answers.append([shown(client, *each) for each in BEHIND])
    assert answers[0] == answers[1]


def compare(clients: Both, method: str, path: str, options: dict[str, Any]) -> None:
    ours, theirs = (shown(client, method, path, options) for client in clients)
    assert ours == theirs


def shown(client: httpx.Client, method: str, path: str, options: dict[str, Any]) -> Any:
    # A server ends the connection on which an application has failed, when it has answered.
    response = client.request(method, path, headers={"connection": "close"}, **options)
    host = client.base_url.netloc.decode()
    headers = sorted(
        # Starlette writes methods in the order of a set.
        (name, sorted(value) if name == "allow" else value.replace(host, "HOST"))
        for name, value in response.headers.multi_items()
        if name not in OWN
    )
    return response.status_code, headers, response.content
