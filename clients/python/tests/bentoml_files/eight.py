"""A BentoML service with an api of each kind, and a task. Nothing in it knows of Tessera."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import bentoml
import numpy as np
import pandas as pd
from bentoml.validators import ContentType, DType, Shape
from PIL.Image import Image
from pydantic import BaseModel, Field


class Address(BaseModel):
    street: str = Field(min_length=1, description="With its number.")
    city: str = "Zürich"


class Person(BaseModel):
    name: str
    born: datetime | None = None
    addresses: list[Address] = []


@bentoml.service
class Translator:
    def __init__(self) -> None:
        self.words = {"hello": "hallo"}

    @bentoml.on_startup
    def prepare(self) -> None:
        self.words["world"] = "Welt"

    @bentoml.api
    def translate(self, text: str) -> str:
        return " ".join(self.words.get(each, each) for each in text.split())


@bentoml.service(
    traffic={"timeout": 30, "max_concurrency": 50},
    threads=2,
    envs=[{"name": "EIGHT_GREETING", "value": "Grüezi"}],
)
class Eight:
    """Of each kind one."""

    translator = bentoml.depends(Translator)

    def __init__(self) -> None:
        self.started: list[str] = []

    @bentoml.on_startup
    async def start(self) -> None:
        await asyncio.sleep(0)
        self.started.append("async")

    @bentoml.on_startup
    def start_too(self) -> None:
        self.started.append("sync")

    @bentoml.api
    def text(self, name: str, times: int = 1, excited: bool = False) -> str:
        """Greets somebody."""
        return ", ".join([f"Grüezi {name}"] * times) + ("!" if excited else "")

    @bentoml.api
    async def model(self, person: Person, note: str | None = None) -> Person:
        person.addresses.append(Address(street=note or "Bahnhofstrasse 1"))
        return person

    @bentoml.api
    def image(self, picture: Image, size: int = 2) -> Image:
        return picture.convert("L").resize((size, size))

    @bentoml.api
    def path(
        self, document: Annotated[Path, ContentType("text/*")], upper: bool = True
    ) -> Annotated[Path, ContentType("text/plain")]:
        text = document.read_text()
        out = document.with_name(f"out{document.suffix}")
        out.write_text(text.upper() if upper else text)
        return out

    @bentoml.api
    def array(
        self, numbers: Annotated[np.ndarray, DType("float64"), Shape((2, 2))], by: float = 2.0
    ) -> np.ndarray:
        return numbers * by

    @bentoml.api
    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        rows["total"] = rows["price"] * rows["count"]
        return rows

    @bentoml.api
    async def tokens(self, prompt: str) -> AsyncGenerator[str, None]:
        for each in prompt.split():
            await asyncio.sleep(0)
            yield f"{each} "

    @bentoml.api
    def depends(self, text: str) -> str:
        return self.translator.translate(text=text)

    @bentoml.task
    def count(self, items: list[int], ctx: bentoml.Context) -> dict[str, Any]:
        return {
            "sum": sum(items),
            "known": bool(ctx.request.state.task_id),
            "started": self.started,
        }

    # What is rarer.

    @bentoml.api(route="/v1/pairs")
    def pairs(self, **pairs: Any) -> dict:
        """Has a route of its own."""
        return pairs

    @bentoml.api
    def anything(self, value):
        return value

    @bentoml.api
    def several(self, files: list[Path]) -> list[str]:
        return [each.read_text() for each in files]

    @bentoml.api
    def maybe(self, text: str | None = None) -> str | None:
        return text

    @bentoml.api
    def raw(self, size: int) -> bytes:
        return bytes(range(size))

    @bentoml.api
    def page(self) -> Annotated[str, ContentType("text/html")]:
        return "<p>ä</p>"

    @bentoml.api
    def objects(self, count: int) -> Generator[dict, None, None]:
        for each in range(count):
            yield {"number": each, "text": "ä"}

    @bentoml.api
    def refuse(self, status: int) -> str:
        raise bentoml.exceptions.BentoMLException("not like this", error_code=HTTPStatus(status))

    @bentoml.api
    def answer(self, status: int, ctx: bentoml.Context) -> dict:
        ctx.response.status_code = status
        ctx.response.headers["x-model"] = "v2"
        ctx.response.set_cookie("seen", "yes")
        Path(ctx.temp_dir, "note.txt").write_text("temporary")
        return {"status": status, "route": ctx.request.url.path}

    @bentoml.api(batchable=True, max_batch_size=4)
    def double(self, numbers: list[int]) -> list[int]:
        if 13 in numbers:
            raise ValueError("13 is not doubled")
        assert len(numbers) <= 4
        return [each * 2 for each in numbers]

    @bentoml.api(batchable=True, batch_dim=0, max_batch_size=8)
    async def sums(self, matrix: np.ndarray) -> np.ndarray:
        return matrix.sum(axis=1)
