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

from calling import execute, incoming
from cases import Case
from conftest import Hosted

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
