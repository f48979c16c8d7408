"""The service, of its parts."""

import bentoml

from .answers import Answers
from .files import Files
from .models import Models
from .results import Results
from .values import Values

PARTS: tuple[type, ...] = (Values, Models, Files, Answers, Results)
if not bentoml.__version__.startswith("1.3."):
    from .roots import Roots

    PARTS += (Roots,)


@bentoml.service
class Dictionary:
    @bentoml.api
    def translate(self, text: str) -> str:
        return {"hello": "hallo"}[text]

    @bentoml.api
    async def known(self) -> list[str]:
        return ["hello"]


@bentoml.service(threads=2)
class Every(*PARTS):  # type: ignore[misc]
    dictionary = bentoml.depends(Dictionary)

    @bentoml.api
    def translated(self, text: str) -> str:
        return self.dictionary.translate(text=text)

    @bentoml.api
    async def translated_async(self, text: str) -> list[str]:
        return [await self.dictionary.to_async.translate(text=text)]

    @bentoml.api
    async def known_words(self) -> list[str]:
        return await self.dictionary.known()
