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

MIDDLED: list[tuple[str, Any, dict[str, str]]] = [
    ("/double", {"number": 4}, {}),
    ("/double", {"number": 4}, {"x-name": ""}),
    ("/double", {"number": 4}, {"x-name": "Ada"}),
    ("/named", {}, {"x-name": "Ada"}),
    ("/named", {}, {"x-name": "Ada", "x-change": "status"}),
    ("/letters", {"text": "banana"}, {"x-name": "Ada"}),
    ("/letters", {"text": "banana"}, {"x-name": "Ada", "x-change": "body"}),
    ("/named", {}, {"x-name": "Adam", "x-change": "body"}),
    ("/file", {}, {"x-name": "Ada"}),
    ("/file", {}, {"x-name": "Ada", "x-change": "body"}),
    ("/file", {}, {}),
    ("/tokens", {"count": 5}, {"x-name": "Ada"}),
    ("/tokens", {"count": 5}, {"x-name": "Ada", "x-change": "body"}),
    ("/lengths", {"texts": ["a", "bc"]}, {"x-name": "Ada"}),
]

Both = tuple[httpx.Client, httpx.Client]


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both("mounted.py:Mounted", tmp_path_factory)


@pytest.fixture(scope="module")
def rooted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both("rooted.py:Rooted", tmp_path_factory)


@pytest.fixture(scope="module")
def middled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both("middled.py:Middled", tmp_path_factory)


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


@pytest.mark.skipif(bentoml.__version__.startswith("1.3."), reason="it has no commands yet")
def test_a_command_answers_who_depends_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
        monkeypatch.setenv("COMMANDED_PORT", port)
    # Under bentoml serve the first one answers the same; 1.4.40 breaks on the others.
    with tessera_serve("commanded_dependency.py:Asking", tmp_path) as client:
        answers = [
            client.post(path, json={"path": "/x?q=1"}).text
            for path in ("/ask", "/ask_by_client", "/ask_in_thread")
        ]
    assert answers == [
        "200 1 GET /x?q=1 b''",
        f"200 http://127.0.0.1:{port} GET /x?q=1 b''",
        "200 POST /x?q=1 b'a body'",
    ]


@pytest.mark.parametrize(("path", "arguments", "headers"), MIDDLED)
def test_methods_answer_the_same_behind_middlewares(
    middled: Both, path: str, arguments: Any, headers: dict[str, str]
) -> None:
    ours, theirs = (client.post(path, json=arguments, headers=headers) for client in middled)
    assert _seen(ours) == _seen(theirs)


def test_middlewares_are_around_what_fails_streams_and_waits(middled: Both) -> None:
    ours, _ = middled
    name = {"x-name": "Ada"}
    assert ours.post("/fails", json={}, headers=name).status_code == 409
    broken = {**name, "x-change": "raise"}
    assert ours.post("/double", json={"number": 1}, headers=broken).status_code == 500
    refused = ours.post("/tokens", json={"count": 1})
    assert (refused.status_code, "who" in refused.json()["message"]) == (401, True)
    call = {"endpoint": "double", "arguments": {"number": 3}}
    path = "/tessera.v1.EndpointService/CallEndpoint"
    assert ours.post(path, json=call).json()["code"] == "unauthenticated"
    assert ours.post(path, json=call, headers=name).json() == {"value": 6}
    for headers, status, text in ((name, 200, "a"), ({}, 401, "who")):
        submitted = ours.post("/later/submit", json={"text": "a"}, headers=headers).json()
        asked = {"task_id": submitted["task_id"], "wait": "30"}
        result = ours.get("/later/get", params=asked)
        assert (result.status_code, text in result.text) == (status, True)


def _seen(response: httpx.Response) -> Any:
    named = ("x-changed", "x-own", "x-path", "x-refused")
    headers = {name: response.headers.get(name) for name in named}
    return response.status_code, headers, response.content


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
