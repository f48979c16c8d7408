"""What is compared: the same functions, as a service of Tessera's own."""

import time
from pathlib import Path

import numpy as np
from PIL.Image import Image

from tessera import Batch, api, service, task


@service
class Bench:
    @api
    def sync(self, name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @api
    async def later(self, name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @task(concurrency=64)
    def job(self, name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @api(concurrency=1)
    def alone(self, name: str) -> str:
        time.sleep(0.01)
        return f"hello {name}"

    @api(concurrency=1, batch=Batch(max_size=32))
    def together(self, name: list[str]) -> list[str]:
        time.sleep(0.01)
        return [f"hello {each}" for each in name]

    @api
    def array(self, values: np.ndarray) -> float:
        return float(values.sum())

    @api
    def file(self, file: Path) -> int:
        return len(file.read_bytes())

    @api
    def picture(self, picture: Image) -> int:
        return int(picture.getpixel((0, 0))[0])
