"""Streamed results: pieces as they come, their end, and what breaks them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from typing import Any

import pytest

from answering import Answering, Reply
from conftest import MakeClient
from servers import ROOT, Server
from tessera import BadArguments, CallFailed, ConnectionBroken, TesseraError

SERVICE = ROOT / "test" / "fixtures" / "services" / "serve" / "streaming.ts"

VALUES = [1, None, {"a": "b\nc"}, "x", [[]]]


@pytest.fixture(scope="module")
def streaming() -> Iterator[Server]:
    with Server(service=SERVICE) as started:
        yield started


@pytest.fixture
def client(make: MakeClient, streaming: Server) -> Any:
    return make(streaming.url)


def test_texts_values_and_bytes_are_iterated(client: Any) -> None:
    texts = ["a", "", "b\r\nc", "🙂"]
    assert list(client.texts.stream(list=texts)) == texts
    assert list(client.values.stream(VALUES)) == VALUES
    assert list(client.audio.stream(list=["ab", "", "c"])) == [b"ab", b"", b"c"]
    assert list(client.texts.stream(list=[])) == []


def test_a_call_gives_the_whole(client: Any) -> None:
    assert client.texts(list=["a", "b\r\n", "c"]) == "ab\r\nc"
    assert client.values(list=VALUES) == VALUES
    file = client.audio(list=["ab", "c"])
    assert (file.content_type, file.read()) == ("audio/mpeg", b"abc")
    with pytest.raises(CallFailed, match="that is all"):
        client.breaks(pieces=2)


def test_a_piece_comes_when_it_is_made(client: Any, gate: Gate) -> None:
    pieces = client.gated.stream(gate=gate.url)
    assert next(pieces) == "begun;"
    gate.answer("second;")
    assert next(pieces) == "second;"
    gate.answer("end")
    assert list(pieces) == []


def test_leaving_ends_the_call(client: Any) -> None:
    pieces = client.fill.stream(name="left", characters=10)
    assert next(pieces) == "x" * 10
    pieces.close()
    while not client.filled(name="left")["left"]:
        pass


def test_a_failure_comes_after_the_pieces_before_it(client: Any) -> None:
    pieces = client.breaks.stream(pieces=2)
    assert [next(pieces), next(pieces)] == ["piece;", "piece;"]
    with pytest.raises(CallFailed, match="that is all") as failed:
        next(pieces)
    assert failed.value.code == "invalid_argument"
    with pytest.raises(CallFailed, match="that is all"):
        next(client.breaks.stream(pieces=0))
    with pytest.raises(BadArguments):
        next(client.breaks.stream(pieces="x"))


def test_an_endpoint_that_does_not_stream_is_not_called(client: Any) -> None:
    with pytest.raises(TesseraError, match="whole is no api that streams: call it without stream"):
        next(client.whole.stream())


def test_a_stream_without_an_end_is_broken(make: MakeClient) -> None:
    route = {"name": "go", "is_task": False, "input": {}, "output": {"is_stream": True}}
    schema = Reply(body=json.dumps({"name": "x", "routes": [route]}))
    headers = {"content-type": "text/event-stream", "tessera-pieces": "json"}
    with Answering([schema, Reply(body="id: 1\ndata: 1\n\n", headers=headers)]) as server:
        pieces = make(server.url).go.stream()
        assert next(pieces) == 1
        with pytest.raises(ConnectionBroken, match="the pieces so far are not the whole"):
            next(pieces)


class Gate:
    """Answers each request when the test says what."""

    def __init__(self) -> None:
        answers: Queue[str] = Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = answers.get().encode()
                self.send_response(200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self.answer = answers.put
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    thread = threading.Thread(target=gate.server.serve_forever)
    thread.start()
    yield gate
    gate.server.shutdown()
    gate.server.server_close()
    thread.join()
