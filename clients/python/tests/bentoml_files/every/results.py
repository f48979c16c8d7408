"""Results of every kind, whatever they are made of."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import bentoml
import numpy as np
import pandas as pd
import PIL.Image
from bentoml.validators import ContentType, DType
from PIL.Image import Image
from pydantic import BaseModel, Field
from starlette.responses import FileResponse, JSONResponse, StreamingResponse


class Unit(Enum):
    METER = "m"
    PIECE = 1


class Measured(BaseModel):
    value: float
    at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    unit: Unit = Unit.METER
    raw: bytes = b"abc"
    amount: Decimal = Decimal("1.10")
    other: Any = None
    public_name: str = Field("n", serialization_alias="publicName")


class Vector(bentoml.IODescriptor):
    values: np.ndarray
    name: str = ""


class Rows(bentoml.IODescriptor):
    rows: pd.DataFrame


@dataclass
class Spot:
    x: float
    y: float


RESULTS: dict[str, Any] = {
    "set": {3},
    "tuple": (1, "a", None),
    "bytes": [b"abc"],
    "moments": {"a": datetime(2026, 1, 2), "b": timedelta(seconds=90), "c": date(2026, 1, 2)},
    "decimal": [Decimal("1.10"), Decimal("NaN")],
    "uuid": [UUID(int=1)],
    "nan": [float("nan"), float("inf"), -0.0],
    "huge": 10**40,
    "float": [1e22, 1e-7, 123456789.0, 0.1 + 0.2],
    "enum": [Unit.METER, Unit.PIECE],
    "keys": {True: "b", None: "c", 1.5: "d"},
    "path": [Path("a/b")],
    "model": Measured(value=1),
    "models": [Measured(value=1)],
    "spot": Spot(1, 2.5),
    "surrogate": "\ud800",
    "control": "\u0000\u2028\u007f<script>",
    "numpy": np.float64(1.5),
    "numpy_integer": np.int64(3),
    "numpy_array": np.array([1, 2]),
    "numpy_list": [np.float32(0.1)],
    "object": object(),
    "exception": ValueError("a"),
    "complex": 1 + 2j,
    "empty": "",
    "none": None,
    "true": True,
    "nested": {"a": {"b": [{"c": ()}]}},
}


def _result(kind: str) -> Any:
    return (each for each in [1, 2]) if kind == "generator" else RESULTS[kind]


class Results:
    @bentoml.api
    def any_result(self, kind: str) -> Any:
        return _result(kind)

    @bentoml.api
    def bare_result(self, kind: str):
        return _result(kind)

    @bentoml.api
    def mapping(self, kind: str) -> dict[str, Any]:
        return {"result": _result(kind)}

    @bentoml.api
    def text_result(self, kind: str) -> str:
        return _result(kind)

    @bentoml.api
    def maybe_text(self, kind: str) -> str | None:
        return _result(kind)

    @bentoml.api
    def number_result(self, kind: str) -> float:
        return _result(kind)

    @bentoml.api
    def list_result(self, kind: str) -> list:
        return _result(kind)

    @bentoml.api
    def model_result(self, kind: str) -> Measured:
        return _result(kind)

    @bentoml.api
    def model_of_dict(self, value: float) -> Measured:
        return {"value": value}  # type: ignore[return-value]

    @bentoml.api
    def models_result(self, count: int) -> list[Measured]:
        return [Measured(value=each) for each in range(count)]

    @bentoml.api
    def measured(self, value: Measured) -> Measured:
        return value

    @bentoml.api
    def vector(self, value: Vector) -> Vector:
        return Vector(values=value.values * 2, name=value.name)

    @bentoml.api
    def vectors(self, value: list[np.ndarray]) -> list[np.ndarray]:
        return value

    @bentoml.api
    def by_key(self, value: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return value

    @bentoml.api
    def rows_in_model(self, value: Rows) -> int:
        return len(value.rows)

    @bentoml.api
    def small_integers(self, value: Annotated[np.ndarray, DType("uint8")]) -> np.ndarray:
        return value

    @bentoml.api
    def array_result(self, kind: str) -> np.ndarray:
        made: dict[str, Any] = {
            "scalar": np.array(1.5),
            "empty": np.zeros((2, 0)),
            "bool": np.array([True, False]),
            "text": np.array(["a", "ä"]),
            "nan": np.array([np.nan, 1.0]),
            "float32": np.array([0.1], dtype="float32"),
            "list": [[1, 2]],
            "complex": np.array([1j]),
            "object": np.array([{"a": 1}], dtype=object),
        }
        return made[kind]

    @bentoml.api
    def table_result(self, kind: str) -> pd.DataFrame:
        made: dict[str, Any] = {
            "empty": pd.DataFrame(),
            "mixed": pd.DataFrame({"a": [1, None], "b": ["ä", None], "c": [True, False]}),
            "index": pd.DataFrame({"a": [1, 2]}, index=["x", "y"]),
            "times": pd.DataFrame({"at": [pd.Timestamp("2026-01-02")]}),
            "list": [{"a": 1}],
        }
        return made[kind]

    @bentoml.api
    def typed_picture(self) -> Annotated[Image, ContentType("image/jpeg")]:
        return PIL.Image.new("L", (2, 2))

    @bentoml.api
    def response_file(self, ctx: bentoml.Context) -> Any:
        path = Path(ctx.temp_dir, "a.csv")
        path.write_text("a\n1\n")
        return FileResponse(path, filename="rows.csv", headers={"x-file": "yes"})

    @bentoml.api
    async def response_stream(self) -> Any:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            yield b"b"

        return StreamingResponse(pieces(), 203, {"x-streamed": "yes"}, media_type="text/x-own")

    @bentoml.api
    def response_cookies(self) -> Any:
        response = JSONResponse(None)
        response.set_cookie("a", "1", max_age=3)
        response.delete_cookie("b")
        return response

    @bentoml.api
    def iterated(self, count: int) -> Iterator[str]:
        for each in range(count):
            yield str(each)

    @bentoml.api
    def returned_iterator(self, text: str) -> Iterator[str]:
        return (each for each in text.split())

    @bentoml.api
    def returned_async_iterator(self, text: str) -> AsyncIterator[str]:
        async def pieces() -> AsyncIterator[str]:
            for each in text.split():
                yield each

        if text == "bad":
            raise bentoml.exceptions.InvalidArgument("nothing to say")
        return pieces()

    @bentoml.api
    async def awaited_iterator(self, count: int) -> AsyncGenerator[Spot, None]:
        async def pieces() -> AsyncGenerator[Spot, None]:
            for each in range(count):
                yield Spot(each, 0)

        return pieces()  # type: ignore[return-value]

    @bentoml.api
    async def awaited_generator(self, text: str) -> Generator[str, None, None]:
        return (each for each in text.split())

    @bentoml.api
    def returned_bytes_iterator(
        self, count: int
    ) -> Annotated[Generator[bytes, None, None], ContentType("video/mp4")]:
        return (bytes([each]) for each in range(count))

    @bentoml.api
    def typed_pieces(self) -> Annotated[Generator[bytes, None, None], ContentType("audio/mpeg")]:
        yield b"\xff\xfb"
        yield b"\x00"

    @bentoml.api
    async def mixed_pieces(self) -> AsyncGenerator[Any, None]:
        yield "a"
        yield b"\xc3"
        yield b"\xa4"

    @bentoml.api
    def pieces_with_head(self, ctx: bentoml.Context) -> Generator[str, None, None]:
        ctx.response.headers["x-stream"] = "yes"
        yield "a"

    @bentoml.api
    def many_pieces(self, count: int) -> Generator[str, None, None]:
        for each in range(count):
            yield f"{each} "

    @bentoml.api
    def late_failure(self) -> Generator[str, None, None]:
        yield "a"
        raise ValueError("late")

    @bentoml.task
    def make_picture(self, width: int) -> Image:
        return PIL.Image.new("RGB", (width, 1))

    @bentoml.task
    def count_bytes(self, file: Path, factor: int = 1) -> int:
        return len(file.read_bytes()) * factor

    @bentoml.task
    def broken_task(self) -> int:
        raise ValueError("a secret")

    @bentoml.api
    def large(self, value: list[float]) -> list[float]:
        return value
