"""A BentoML service whose methods take one value, which is the body; from BentoML 1.4."""

from pathlib import Path
from typing import Any

import bentoml
import numpy as np
from PIL.Image import Image
from pydantic import BaseModel


class Point(BaseModel):
    x: int
    y: int = 0


@bentoml.service
class Roots:
    @bentoml.api
    def text(self, text: str, /) -> str:
        return text.upper()

    @bentoml.api
    def point(self, point: Point, /) -> int:
        return point.x + point.y

    @bentoml.api
    def numbers(self, numbers: list[int], /) -> int:
        return sum(numbers)

    @bentoml.api
    def array(self, array: np.ndarray, /) -> list[float]:
        return [float(array.sum()), float(array.ndim)]

    @bentoml.api
    def document(self, document: Path, /) -> str:
        return document.read_text()

    @bentoml.api
    def picture(self, picture: Image, /) -> list[int]:
        return list(picture.size)

    @bentoml.api
    def data(self, data: dict[str, Any], /) -> dict[str, Any]:
        return data
