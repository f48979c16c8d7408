"""What is compared: the same functions, as a service of BentoML."""

from __future__ import annotations

import bentoml


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
