"""``bentoml.depends``: a dependency keeps to what its own service declares."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import bentoml
import pytest
from bentoml.exceptions import BentoMLException, InvalidArgument, NotFound

from calling import execute, incoming
from cases import Case
from conftest import Hosted
from tessera.bentoml.timed import Threaded
from tessera.sdk.context import Aborted
from tessera.sdk.executable import CallError

Host = Callable[[Any], Hosted]


async def ask_all(hosted: Hosted, name: str, texts: list[str], folder: Path) -> list[Any]:
    """The ends of calls that are made at once."""
    calls = [incoming(hosted.service, Case(name, {"text": each}), folder) for each in texts]
    return await asyncio.gather(
        *(execute(hosted.service, each) for each in calls), return_exceptions=True
    )


def texts_of(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def test_gives_each_caller_its_own_answer_of_a_service_of_one_thread(
    host: Host, tmp_path: Path
) -> None:
    buffer = {"text": "", "busy": 0, "most": 0}

    @bentoml.service
    class OneThread:
        @bentoml.api
        def run(self, text: str) -> str:
            buffer["busy"] += 1
            buffer["most"] = max(buffer["most"], buffer["busy"])
            buffer["text"] = text
            time.sleep(0.005)
            buffer["busy"] -= 1
            return buffer["text"]

    @bentoml.service(threads=8)
    class Front:
        inner = bentoml.depends(OneThread)

        @bentoml.api
        def ask(self, text: str) -> str:
            return self.inner.run(text)

        @bentoml.api
        async def ask_async(self, text: str) -> str:
            return await self.inner.to_async.run(text)

    hosted = host(Front)
    for name in ("ask", "ask_async"):
        texts = texts_of(32)
        ends = hosted.run(ask_all(hosted, name, texts, tmp_path))
        assert ends == [each.encode() for each in texts]
    assert buffer["most"] == 1


def test_has_as_many_threads_as_it_declares_for_all_who_depend_on_it(
    host: Host, tmp_path: Path
) -> None:
    together = threading.Barrier(2, timeout=20)
    running: list[int] = []

    @bentoml.service(threads=2)
    class Two:
        @bentoml.api
        def run(self, text: str) -> str:
            running.append(1)
            assert len(running) <= 2
            together.wait()
            running.pop()
            return text

    @bentoml.service
    class Left:
        two = bentoml.depends(Two)

        @bentoml.api
        async def left(self, text: str) -> str:
            return await self.two.to_async.run(text)

    @bentoml.service
    class Both:
        left_one = bentoml.depends(Left)
        two = bentoml.depends(Two)

        @bentoml.api
        async def ask(self, text: str) -> str:
            if text == "direct":
                return await self.two.to_async.run(text)
            return await self.left_one.left(text)

    hosted = host(Both)
    ends = hosted.run(ask_all(hosted, "ask", ["direct", "nested"], tmp_path))
    assert ends == [b"direct", b"nested"]


def test_joins_the_calls_of_all_callers_of_a_batchable_method(host: Host, tmp_path: Path) -> None:
    rows: list[int] = []
    busy: list[int] = []

    @bentoml.service
    class Embedder:
        @bentoml.api(batchable=True, max_batch_size=32)
        def embed(self, texts: list[str]) -> list[int]:
            assert not busy
            busy.append(1)
            time.sleep(0.05)
            rows.append(len(texts))
            busy.pop()
            if "bad" in texts:
                raise ValueError("bad is not embedded")
            return [len(each) for each in texts]

    @bentoml.service
    class Front:
        inner = bentoml.depends(Embedder)

        @bentoml.api
        async def ask(self, text: str) -> int:
            return (await self.inner.to_async.embed([text]))[0]

        @bentoml.api
        async def many(self, text: str) -> int:
            return sum(await self.inner.to_async.embed([text] * 70))

    hosted = host(Front)
    texts = ["x" * number for number in range(1, 65)]
    ends = hosted.run(ask_all(hosted, "ask", texts, tmp_path))
    assert [int(each) for each in ends] == [len(each) for each in texts]
    assert sum(rows) == 64
    assert len(rows) <= 4
    assert max(rows) == 32

    rows.clear()
    (end,) = hosted.run(ask_all(hosted, "many", ["ab"], tmp_path))
    assert (int(end), rows) == (140, [32, 32, 6])

    first, bad, last = hosted.run(ask_all(hosted, "ask", ["a", "bad", "abc"], tmp_path))
    assert (int(first), int(last)) == (1, 3)
    assert isinstance(bad, ValueError)


def test_joins_the_calls_of_threads_too(host: Host, tmp_path: Path) -> None:
    rows: list[int] = []

    @bentoml.service
    class Doubler:
        @bentoml.api(batchable=True, max_batch_size=8)
        async def double(self, numbers: list[int]) -> list[int]:
            rows.append(len(numbers))
            await asyncio.sleep(0.02)
            return [each * 2 for each in numbers]

    @bentoml.service(threads=8)
    class Front:
        inner = bentoml.depends(Doubler)

        @bentoml.api
        def ask(self, text: str) -> int:
            return self.inner.to_sync.double([len(text)])[0]

    hosted = host(Front)
    texts = ["x" * number for number in range(1, 9)]
    ends = hosted.run(ask_all(hosted, "ask", texts, tmp_path))
    assert [int(each) for each in ends] == [2 * len(each) for each in texts]
    assert len(rows) < len(texts)


@pytest.mark.parametrize("name", ["sync_of_sync", "sync_of_async", "async_of_sync"])
def test_streams_to_callers_of_the_other_kind(name: str, host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Words:
        @bentoml.api
        def words(self, text: str) -> Iterator[str]:
            yield from text

        @bentoml.api
        async def words_async(self, text: str) -> AsyncIterator[str]:
            for each in text:
                yield each

    @bentoml.service
    class Front:
        inner = bentoml.depends(Words)

        @bentoml.api
        def sync_of_sync(self, text: str) -> Iterator[str]:
            yield from self.inner.words(text)

        @bentoml.api
        def sync_of_async(self, text: str) -> Iterator[str]:
            yield from self.inner.to_sync.words_async(text)

        @bentoml.api
        async def async_of_sync(self, text: str) -> AsyncIterator[str]:
            async for each in self.inner.to_async.words(text):
                yield each

    hosted = host(Front)
    assert hosted.run(ask_all(hosted, name, ["abc"], tmp_path)) == [b"abc"]


def test_raises_what_the_method_raised(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Broken:
        note = "an attribute"

        @bentoml.api
        def run(self, text: str) -> str:
            raise TimeoutError(f"no {text}")

    @bentoml.service
    class Front:
        inner = bentoml.depends(Broken)

        @bentoml.api
        async def ask(self, text: str) -> str:
            assert self.inner.note == "an attribute"
            return await self.inner.to_async.run(text)

    hosted = host(Front)
    (end,) = hosted.run(ask_all(hosted, "ask", ["x"], tmp_path))
    assert isinstance(end, TimeoutError)
    assert str(end) == "no x"


TIMEOUT_SECONDS = 0.2
CALLS_OF_ALL_KINDS = [
    (name, manner)
    for name in ("sync", "on_loop", "pieces", "pieces_on_loop", "batch", "batch_on_loop", "job")
    for manner in ("in_thread", "on_loop")
]


@bentoml.service(threads=8, traffic={"timeout": TIMEOUT_SECONDS})
class Slow:
    """Ends when it is told, and says what ended it."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    @bentoml.api
    def sync(self, seconds: float) -> str:
        self._sleep(seconds)
        return "done"

    @bentoml.api
    async def on_loop(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @bentoml.api
    def pieces(self, seconds: float) -> Iterator[str]:
        self._sleep(seconds)
        yield "do"
        self._sleep(2 * TIMEOUT_SECONDS)
        yield "ne"

    @bentoml.api
    async def pieces_on_loop(self, seconds: float) -> AsyncIterator[str]:
        await asyncio.sleep(seconds)
        yield "do"
        await asyncio.sleep(2 * TIMEOUT_SECONDS)
        yield "ne"

    @bentoml.api(batchable=True)
    def batch(self, seconds: list[float]) -> list[str]:
        self._sleep(max(seconds))
        return ["done"] * len(seconds)

    @bentoml.api(batchable=True)
    async def batch_on_loop(self, seconds: list[float]) -> list[str]:
        await asyncio.sleep(max(seconds))
        return ["done"] * len(seconds)

    @bentoml.task
    def job(self, seconds: float) -> str:
        self._sleep(seconds)
        return "done"

    @bentoml.task
    async def job_on_loop(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    def _sleep(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                time.sleep(0.01)
        except BaseException as error:
            self.ends.append(type(error).__name__)
            raise


@bentoml.service(threads=8)
class Asking:
    slow = bentoml.depends(Slow)

    @bentoml.api
    def in_thread(self, text: str) -> str:
        name, seconds = text.split()
        answer = getattr(self.slow.to_sync, name)(_argument(name, seconds))
        return "".join(answer)

    @bentoml.api
    async def on_loop(self, text: str) -> str:
        name, seconds = text.split()
        answer = getattr(self.slow.to_async, name)(_argument(name, seconds))
        if name.startswith("pieces"):
            return "".join([each async for each in answer])
        return "".join(await answer)


def _argument(name: str, seconds: str) -> Any:
    return [float(seconds)] if name.startswith("batch") else float(seconds)


@pytest.mark.parametrize(("name", "manner"), CALLS_OF_ALL_KINDS)
def test_answers_as_late_as_its_service_declares(
    name: str, manner: str, host: Host, tmp_path: Path
) -> None:
    hosted = host(Asking)
    in_time, late = hosted.run(
        ask_all(hosted, manner, [f"{name} 0.01", f"{name} 1.5"], tmp_path)
        if not name.startswith("batch")
        else _one_by_one(hosted, manner, [f"{name} 0.01", f"{name} 1.5"], tmp_path)
    )
    assert in_time == b"done"
    assert isinstance(late, CallError)
    assert (late.code, str(late)) == (
        "deadline_exceeded",
        f"Not able to process the request in {TIMEOUT_SECONDS} seconds",
    )


async def _one_by_one(hosted: Hosted, name: str, texts: list[str], folder: Path) -> list[Any]:
    """Otherwise they would be one batch."""
    return [end for each in texts for end in await ask_all(hosted, name, [each], folder)]


@bentoml.service(threads=4)
class Submitting:
    slow = bentoml.depends(Slow)

    @bentoml.api
    def sync(self, text: str) -> str:
        task = self.slow.job.submit(seconds=2 * TIMEOUT_SECONDS)
        with pytest.raises(InvalidArgument, match="not completed yet"):
            task.get()
        with pytest.raises(InvalidArgument, match="not completed yet"):
            task.retry()
        again = _ended(task).retry()
        assert again.id != task.id
        stopped = self.slow.job.submit(60.0)
        stopped.cancel()
        with pytest.raises(BentoMLException, match="was cancelled"):
            stopped.get()
        with pytest.raises(NotFound):
            self.slow.job.get("nobody")
        return f"{task.get()} {_ended(again).get()} {stopped.get_status().name}"

    @bentoml.api
    async def on_loop(self, text: str) -> str:
        method = {"job": self.slow.to_async.job, "job_on_loop": self.slow.job_on_loop}[text]
        task = await method.submit(seconds=2 * TIMEOUT_SECONDS)
        with pytest.raises(InvalidArgument, match="not completed yet"):
            await task.get()
        while (await task.get_status()).name == "IN_PROGRESS":
            await asyncio.sleep(0.01)
        await task.cancel()
        again = await task.retry()
        stopped = await method.submit(60.0)
        await stopped.cancel()
        with pytest.raises(BentoMLException, match="was cancelled"):
            await stopped.get()
        while (await again.get_status()).name == "IN_PROGRESS":
            await asyncio.sleep(0.01)
        answers = [await method.get(each.id) for each in (task, again)]
        return f"{' '.join(answers)} {(await stopped.get_status()).name}"


def _ended(task: Any) -> Any:
    while task.get_status().name == "IN_PROGRESS":
        time.sleep(0.01)
    return task


@pytest.mark.parametrize(
    ("name", "text"), [("sync", "job"), ("on_loop", "job"), ("on_loop", "job_on_loop")]
)
def test_runs_submitted_tasks_as_long_as_they_take(
    name: str, text: str, host: Host, tmp_path: Path
) -> None:
    hosted = host(Submitting)
    (end,) = hosted.run(ask_all(hosted, name, [text], tmp_path))
    # Cancelled has two l in older versions.
    assert end in (b"done done CANCELED", b"done done CANCELLED")


def test_gives_what_a_submitted_task_raised_and_says_that_it_failed(
    host: Host, tmp_path: Path
) -> None:
    @bentoml.service
    class Failing:
        @bentoml.task
        def job(self, text: str) -> str:
            raise LookupError(f"no {text}")

    @bentoml.service
    class Front:
        inner = bentoml.depends(Failing)

        @bentoml.api
        def ask(self, text: str) -> str:
            task = _ended(self.inner.job.submit(text))
            with pytest.raises(LookupError, match="no x"):
                task.get()
            return str(task.get_status().name)

    hosted = host(Front)
    (end,) = hosted.run(ask_all(hosted, "ask", ["x"], tmp_path))
    assert end in (b"FAILED", b"FAILURE")


def test_an_abort_reaches_the_method_of_a_dependency_and_waits_for_its_end() -> None:
    begun, ended = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            time.sleep(0.1)
            ended.set()

    threaded = Threaded(run)

    def leave() -> bool:
        """As a caller in whose thread an abort is raised."""
        begun.wait()
        with pytest.raises(KeyboardInterrupt):
            threaded.result(60)
        return ended.is_set()

    real = threaded.end.result

    def interrupted(timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    threaded.end.result = interrupted  # type: ignore[method-assign]
    assert leave()
    with pytest.raises(Aborted):
        real()
