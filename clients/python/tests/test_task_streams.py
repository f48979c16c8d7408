"""Streamed results of tasks: every piece once, whatever happens to the connection."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from conftest import MakeClient
from cutting import CuttingProxy
from servers import ROOT, Server
from tessera import BadArguments, TaskCancelled, TaskRestarted

SERVICE = ROOT / "test" / "fixtures" / "services" / "serve" / "streamed-tasks.ts"


class Gate:
    """Where the function of `gated` waits after each piece until the test lets it go on."""

    def __init__(self) -> None:
        self._arrived: queue.Queue[tuple[int, queue.Queue[str]]] = queue.Queue()
        arrived = self._arrived

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer: queue.Queue[str] = queue.Queue()
                pid = parse_qs(urlsplit(self.path).query)["pid"][0]
                arrived.put((int(pid), answer))
                text = answer.get(timeout=60).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def arrival(self) -> int:
        """Waits for the function and leaves it there; returns the process of its worker."""
        pid, _ = self._arrived.get(timeout=60)
        return pid

    def open(self, text: str) -> None:
        """Lets the next function that comes go on with this text."""
        self._arrived.get(timeout=60)[1].put(text)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def streaming() -> Iterator[Server]:
    with Server(service=SERVICE) as started:
        yield started


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.close()


def test_yields_what_the_task_gave_as_what_it_is(make: MakeClient, streaming: Server) -> None:
    client = make(streaming.url)
    values = [1, None, {"a": "b\nc"}, "é\u2028"]
    assert list(client.values.submit(list=values).stream()) == values
    assert list(client.texts.submit(list=["a", "\n"]).stream()) == ["a", "\n"]
    assert list(client.audio.submit(list=["ab", "c"]).stream()) == [b"ab", b"c"]


def test_loses_and_repeats_nothing_when_the_connection_breaks(
    make: MakeClient, streaming: Server, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tessera.streams.FIRST_PAUSE_S", 0.01)
    with CuttingProxy(streaming.port, lambda _: None) as proxy:
        task = make(proxy.url).gated.submit(gate=gate.url)
        read: list[str] = []
        for piece in task.stream():
            read.append(piece)
            proxy.drop()
            gate.open("end" if len(read) == 6 else f"{len(read)};")
        assert read == ["begun 1;", "1;", "2;", "3;", "4;", "5;"]
        assert task.wait() == "".join(read)


def test_tells_of_a_restart_or_raises_it(make: MakeClient, streaming: Server, gate: Gate) -> None:
    client = make(streaming.url)
    task = client.gated.submit(gate=gate.url)
    restarts: list[int] = []
    pieces = task.stream(on_restart=restarts.append)
    unprepared = client.task("gated", task.id).stream()
    assert [next(pieces), next(unprepared)] == ["begun 1;", "begun 1;"]
    os.kill(gate.arrival(), signal.SIGKILL)
    gate.open("end")
    assert list(pieces) == ["begun 2;"]
    assert restarts == [2]
    with pytest.raises(TaskRestarted):
        next(unprepared)


def test_raises_the_end_of_a_task_that_did_not_succeed(
    make: MakeClient, streaming: Server, gate: Gate
) -> None:
    client = make(streaming.url)
    task = client.gated.submit(gate=gate.url)
    pieces = task.stream()
    assert next(pieces) == "begun 1;"
    gate.arrival()
    task.cancel(abort=True)
    with pytest.raises(TaskCancelled):
        next(pieces)
    with pytest.raises(BadArguments):
        next(client.whole.submit().stream())


def test_is_left_without_an_effect_on_the_task(
    make: MakeClient, streaming: Server, gate: Gate
) -> None:
    task = make(streaming.url).gated.submit(gate=gate.url)
    pieces = task.stream()
    assert next(pieces) == "begun 1;"
    pieces.close()
    gate.open("end")
    assert task.wait() == "begun 1;"
