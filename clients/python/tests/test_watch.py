"""The log of a task: every entry once, whatever happens to the connection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timezone

import pytest

from conftest import MakeClient
from cutting import CuttingProxy
from gate import Gate
from servers import ROOT, Server
from tessera import LogEvent, ProgressEvent, StateEvent, TaskNotFound

SERVICE = ROOT / "test" / "fixtures" / "services" / "serve" / "watched-tasks.ts"


@pytest.fixture(scope="module")
def watched() -> Iterator[Server]:
    with Server(service=SERVICE) as started:
        yield started


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.close()


def told(entry: object) -> object:
    """What an entry says, without its time."""
    if isinstance(entry, StateEvent):
        return entry.status
    if isinstance(entry, ProgressEvent):
        return (entry.fraction, entry.message)
    assert isinstance(entry, LogEvent)
    return (entry.level, entry.message, dict(entry.fields), entry.line)


def test_yields_states_lines_and_progress_until_the_end(
    make: MakeClient, watched: Server, gate: Gate
) -> None:
    task = make(watched.url).gated.submit(gate=gate.url)
    for text in ["one", "end"]:
        gate.open(text)
    entries = list(task.watch())
    assert [told(each) for each in entries] == [
        "queued",
        "running",
        ("warn", "one", {"line": 1}, 1),
        (0.1, "one"),
        "success",
    ]
    assert [each.sequence for each in entries] == [1, 2, 3, 4, 5]
    assert [each.attempt for each in entries] == [0, 1, 1, 1, 1]
    assert entries[0].time.tzinfo == timezone.utc
    assert list(task.watch(after=3)) == entries[3:]


def test_tells_why_an_attempt_failed(make: MakeClient, watched: Server, gate: Gate) -> None:
    task = make(watched.url).gated.submit(gate=gate.url)
    for text in ["fail", "end"]:
        gate.open(text)
    again = next(each for each in task.watch(after=2) if each.type == "state")
    assert (again.status, again.failure, again.reason) == ("queued", "the gate said so", "error")
    assert again.retry_at is not None


def test_loses_and_repeats_nothing_when_the_connection_breaks(
    make: MakeClient, watched: Server, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tessera.streams.FIRST_PAUSE_S", 0.01)
    with CuttingProxy(watched.port, lambda _: None) as proxy:
        task = make(proxy.url).gated.submit(gate=gate.url)
        lines: list[str] = []
        sequences: list[int] = []
        gate.open("0")
        for entry in task.watch():
            sequences.append(entry.sequence)
            if isinstance(entry, LogEvent):
                lines.append(entry.message)
                proxy.drop()
                gate.open("end" if len(lines) == 5 else str(len(lines)))
        assert lines == ["0", "1", "2", "3", "4"]
        assert sequences == list(range(1, len(sequences) + 1))
        assert proxy.connections > 5


def test_a_task_that_does_not_exist_is_not_found(make: MakeClient, watched: Server) -> None:
    with pytest.raises(TaskNotFound):
        next(make(watched.url).task("gated", "tsk_nothing").watch())
