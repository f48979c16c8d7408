"""Tells the types of files by their content, with the model of Magika, whose wheel carries it."""

from typing import Annotated

from magika import Magika
from magika.types import MagikaResult
from pydantic import BaseModel, Field
from tessera import Batch, File, FileType, api, counter, service

MAX_FILE_BYTES = 20_000_000

identified = counter("filetype_identified", help="Files whose type was told.", labels=["label"])


class Kind(BaseModel):
    """What a file is."""

    filename: str | None
    label: str = Field(description='A short name, such as "python".')
    description: str
    mime_type: str
    group: str = Field(description='Such as "code", "document", "archive" or "image".')
    is_text: bool
    score: float = Field(description="How sure the model is, from 0 to 1.")


@service(name="filetype", metrics=[identified])
class Filetype:
    """Tells the types of files by their content; their names do not matter."""

    def setup(self) -> None:
        self.model = Magika()

    @api(timeout="30s", batch=Batch(max_size=32, max_wait="5ms"))
    def identify(
        self, file: list[Annotated[File, FileType(max_bytes=MAX_FILE_BYTES)]]
    ) -> list[Kind | Exception]:
        """Tells the type of a file. Those that come at the same time are told together."""
        answers = self.model.identify_paths([each.path for each in file])
        return [kind(each, answer) for each, answer in zip(file, answers, strict=True)]


def kind(file: File, answer: MagikaResult) -> Kind | Exception:
    if not answer.ok:
        return RuntimeError(f"{file.name or 'the file'} could not be read: {answer.status}")
    found = answer.output
    identified.inc(label=found.label)
    return Kind(
        filename=file.name,
        label=found.label,
        description=found.description,
        mime_type=found.mime_type,
        group=found.group,
        is_text=found.is_text,
        score=round(answer.score, 3),
    )
