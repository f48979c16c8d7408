"""The summarizer of the image's trial, with a package that has native code."""

from typing import Annotated

from pydantic import Field
from pydantic_core import to_json

from tessera import api, service, task


@service
class Summarizer:
    @api
    def summarize(self, text: Annotated[str, Field(max_length=1_000)], sentences: int = 1) -> str:
        assert to_json(text)
        return " ".join(text.split(" ")[:sentences])

    @task
    def summarize_batch(self, texts: list[str]) -> list[str]:
        return texts
