"""Files, pictures, arrays and tables, alone and beside other arguments."""

from pathlib import Path
from typing import Annotated, Any

import bentoml
import numpy as np
import pandas as pd
import PIL.Image
from bentoml.validators import ContentType, DataframeSchema, DType, Shape
from PIL.Image import Image
from pydantic import BaseModel


class Frame(BaseModel):
    width: int
    title: str = "frame"


class Files:
    @bentoml.api
    def file(self, file: Path) -> str:
        return file.read_text()

    @bentoml.api
    def plain(self, file: Annotated[Path, ContentType("text/plain")]) -> int:
        return len(file.read_bytes())

    @bentoml.api
    def sound(self, file: Annotated[Path, ContentType("audio/mpeg")]) -> int:
        return len(file.read_bytes())

    @bentoml.api
    def ending(self, file: Path) -> str:
        return file.suffix

    @bentoml.api
    def maybe_file(self, file: Path | None = None) -> int | None:
        return None if file is None else len(file.read_bytes())

    @bentoml.api
    def several(self, files: list[Path]) -> list[str]:
        return [each.read_text() for each in files]

    @bentoml.api
    def two(self, first: Path, second: Path) -> list[int]:
        return [len(first.read_bytes()), len(second.read_bytes())]

    @bentoml.api
    def mixed(
        self,
        file: Path,
        frame: Frame,
        scale: float = 1.0,
        words: list[str] | None = None,
        name: str = "",
    ) -> dict[str, Any]:
        size = len(file.read_bytes())
        return {"size": size, "frame": frame, "scale": scale, "words": words, "name": name}

    @bentoml.api
    def picture(self, image: Image) -> list[Any]:
        return [image.format, image.mode, *image.size]

    @bentoml.api
    def pictures(self, images: list[Image]) -> list[list[int]]:
        return [list(each.size) for each in images]

    @bentoml.api
    def returned_picture(self, width: int, kind: str = "PNG") -> Image:
        image = PIL.Image.new("RGB", (width, 1), (1, 2, 3))
        image.format = kind
        return image

    @bentoml.api
    def returned_file(self, name: str, ctx: bentoml.Context) -> Path:
        path = Path(ctx.temp_dir, name)
        path.write_text(f"of {name}")
        return path

    @bentoml.api
    def typed_file(self, ctx: bentoml.Context) -> Annotated[Path, ContentType("text/csv")]:
        path = Path(ctx.temp_dir, "rows")
        path.write_text("a,b\n1,2\n")
        return path

    @bentoml.api
    def returned_bytes(self, size: int) -> bytes:
        return bytes(range(size))

    @bentoml.api
    def typed_bytes(self, size: int) -> Annotated[bytes, ContentType("application/pdf")]:
        return b"%PDF" + bytes(size)

    @bentoml.api
    def array(self, value: np.ndarray) -> list[Any]:
        return [str(value.dtype), list(value.shape), float(value.sum())]

    @bentoml.api
    def doubled(self, value: np.ndarray) -> np.ndarray:
        return value * 2

    @bentoml.api
    def shaped(
        self, value: Annotated[np.ndarray, DType("float32"), Shape((2, 2))]
    ) -> Annotated[np.ndarray, DType("float32"), Shape((2,))]:
        return value.sum(axis=1)

    @bentoml.api
    def whole(self, value: Annotated[np.ndarray, DType("int64")]) -> np.ndarray:
        return value

    @bentoml.api
    def table(self, value: pd.DataFrame) -> pd.DataFrame:
        return value

    @bentoml.api
    def columns(
        self,
        value: Annotated[pd.DataFrame, DataframeSchema(orient="columns", columns=["a", "b"])],
    ) -> Annotated[pd.DataFrame, DataframeSchema(orient="columns")]:
        return value

    @bentoml.api
    def array_and_table(self, value: np.ndarray, rows: pd.DataFrame, by: int = 1) -> list[int]:
        return [value.size * by, len(rows)]
