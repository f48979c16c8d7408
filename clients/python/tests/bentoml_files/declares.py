"""A service that relies on what it and its dependency declare: processes, time, tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import bentoml
from bentoml.exceptions import BentoMLException


@bentoml.service(threads=4, traffic={"timeout": 1})
class Inner:
    @bentoml.api
    def sync(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    @bentoml.api
    async def on_loop(self, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @bentoml.api
    def pieces(self, seconds: float) -> Iterator[str]:
        time.sleep(seconds)
        yield "done"

    @bentoml.api(batchable=True)
    def batch(self, seconds: list[float]) -> list[str]:
        time.sleep(max(seconds))
        return ["done"] * len(seconds)

    @bentoml.task
    def job(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"


@bentoml.service(threads=4)
class Declares:
    inner = bentoml.depends(Inner)

    def __init__(self) -> None:
        self.texts: list[str] = []

    @bentoml.api
    def keep(self, text: str) -> int:
        self.texts.append(text)
        return len(self.texts)

    @bentoml.api
    def ask(self, method: str, seconds: float) -> str:
        call = getattr(self.inner.to_sync, method)
        try:
            return "".join(call([seconds]) if method == "batch" else call(seconds=seconds))
        except Exception as error:
            return _ended_by(error)

    @bentoml.api
    async def ask_on_loop(self, method: str, seconds: float) -> str:
        call = getattr(self.inner.to_async, method)
        try:
            if method == "pieces":
                return "".join([each async for each in call(seconds=seconds)])
            return "".join(await (call([seconds]) if method == "batch" else call(seconds=seconds)))
        except Exception as error:
            return _ended_by(error)

    @bentoml.api
    def submit(self, seconds: float) -> list[str]:
        task = self.inner.job.submit(seconds=seconds)
        said = [type(task).__name__, task.get_status().name]
        try:
            task.get()
        except BentoMLException as error:
            said.append(f"{type(error).__name__} {error.error_code.value}")
        while task.get_status().name == "IN_PROGRESS":
            time.sleep(0.05)
        again = task.retry()
        while again.get_status().name == "IN_PROGRESS":
            time.sleep(0.05)
        return [*said, task.get_status().value, task.get(), again.get()]


def _ended_by(error: Exception) -> str:
    if isinstance(error, BentoMLException):
        return f"BentoMLException {error.error_code.value}"
    return type(error).__name__
