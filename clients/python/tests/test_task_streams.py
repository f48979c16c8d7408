"""Streamed results of tasks: every piece once, whatever happens to the connection."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from conftest import MakeClient
from cutting import CuttingProxy
from gate import Gate
from servers import ROOT, Server
from tessera import BadArguments, TaskCancelled, TaskRestarted

SERVICE = ROOT / "test" / "fixtures" / "services" / "serve" / "streamed-tasks.ts"


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
