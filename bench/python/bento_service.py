"""What is compared: the same functions, as a service of BentoML."""

from __future__ import annotations

from pathlib import Path

import bentoml
import numpy as np
from PIL.Image import Image


@bentoml.service(workers=1)
class Bench:
    @bentoml.api
    def sync(self, name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @bentoml.api
    async def later(self, name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @bentoml.task
    def job(self, name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @bentoml.api
    def array(self, values: np.ndarray) -> float:
        return float(values.sum())

    @bentoml.api
    def file(self, file: Path) -> int:
        return len(file.read_bytes())

    @bentoml.api
    def picture(self, picture: Image) -> int:
        return int(picture.getpixel((0, 0))[0])
