"""Uses generated clients; what a type checker has to refuse is marked, and never run."""

import asyncio
import json
import sys
from contextlib import aclosing

import digits
import streamed
import summarizer
from clients import AsyncClientsClient, ClientsClient

from tessera import ResultFile


def calls(url: str) -> list[object]:
    with ClientsClient(url, token="") as client:
        greeting: str = client.greet(name="Ada")
        total: float = client.add(numbers=[1, 2.5])
        task = client.greet_later.with_options(priority=3).submit(name="Bob", times=2)
        later: str = task.wait(timeout=30)
        same: str = client.greet_later.task(task.id).get()
        paint: ResultFile = client.paint(name="p.png")
        measured = client.measure(document=b"abc", tags=["a"])
        return [greeting, total, later, same == later, paint.name, measured["document"]["bytes"]]


def streams(url: str) -> list[object]:
    with streamed.StreamedTasksClient(url) as client:
        texts = client.texts.submit(list=["a", "b"])
        pieces: list[str] = [piece for piece in texts.stream()]
        whole: str = texts.wait()
        audio: list[bytes] = list(client.audio.submit(list=["ab"]).stream())
        return [pieces, whole, audio == [b"ab"]]


async def asynchronous(url: str, streamed_url: str) -> list[object]:
    async with AsyncClientsClient(url) as client:
        greeting: str = await client.greet(name="Ada", times=2)
        task = await client.add.submit(numbers=(1, 2))
        total: float = await task.wait()
    async with streamed.AsyncStreamedTasksClient(streamed_url) as other:
        texts = await other.texts.submit(list=["a"])
        async with aclosing(texts.stream()) as stream:
            pieces: list[str] = [piece async for piece in stream]
    return [greeting, total, pieces]


def refused(client: ClientsClient) -> None:
    client.great(name="Ada")  # type: ignore
    client.greet(nam="Ada")  # type: ignore
    client.greet(name=1)  # type: ignore
    client.greet(times=1)  # type: ignore
    client.greet("Ada")  # type: ignore
    client.greet.submit(name="Ada")  # type: ignore
    client.greet_later.with_options(prio=1)  # type: ignore
    client.measure(document=7)  # type: ignore
    number: int = client.greet(name="Ada")  # type: ignore
    text: int = client.greet_later.submit(name="Ada").wait()  # type: ignore
    print(number, text)


async def refused_too(client: AsyncClientsClient) -> None:
    await client.great(name="Ada")  # type: ignore
    await client.greet(nam="Ada")  # type: ignore
    text: str = client.greet(name="Ada")  # type: ignore
    print(text)


def examples(client: summarizer.SummarizerClient, other: digits.DigitsClient) -> None:
    summaries: list[str] = client.summarize_batch(texts=["a"], sentences=1)
    digit: int = other.classify(image="a.png")["digit"]
    other.classify(picture="a.png")  # type: ignore
    print(summaries, digit)


if __name__ == "__main__":
    url, streamed_url = sys.argv[1:]
    said = [calls(url), streams(streamed_url), asyncio.run(asynchronous(url, streamed_url))]
    print(json.dumps(said))
