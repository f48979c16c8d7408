"""Writes results as BentoML writes the body of its response, byte for byte."""

from __future__ import annotations

import codecs
import json
import mimetypes
from collections.abc import Callable
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError
from starlette.responses import Response

from ..sdk.executable import FileResult, JsonResult, Result
from ..sdk.responses import content_of
from . import internals
from .failures import output_invalid
from .manifest import Shape, with_charset

BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
_NO_CONTENT_TYPES = frozenset({"text/plain", "text/event-stream", "application/json"})
"""What BentoML says of bytes without a content type."""


class ResultWriter:
    """Writes the results of one method."""

    def __init__(self, method: Any, shape: Shape) -> None:
        self._endpoint: str = method.name
        self._spec = method.output_spec
        self._shape = shape
        kind = shape.output.get("type")
        self._is_text = kind == "string" and shape.output_file is None
        self._is_bare = kind is None or kind == "string"
        """True for a result that may be a text or bytes, which BentoML sends without quotes."""

    def write(self, value: Any) -> Result:
        """Raises ``CallError`` for a result that the output spec refuses, or that is no JSON."""
        if isinstance(value, PurePath):
            guessed = mimetypes.guess_type(value)[0]
            kind = with_charset(guessed) if guessed else self._file_type()
            return FileResult(Path(value), kind, value.name)
        if type(value).__module__.startswith("PIL."):
            return _picture(value)
        try:
            return self._rendered(value)
        except ValidationError as error:
            raise output_invalid(self._endpoint, error) from error
        except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
            raise output_invalid(self._endpoint, error) from error

    def piece_writer(self) -> Callable[[Any], str | bytes]:
        """Writes the pieces of one stream."""
        if self._shape.pieces == "json":
            return self._json_piece
        if self._shape.pieces == "bytes":
            return lambda piece: self._encoded(piece)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return lambda piece: (
            piece
            if isinstance(piece, str)
            else decoder.decode(piece)
            if isinstance(piece, bytes)
            else self._json_piece(piece)
        )

    def _rendered(self, value: Any) -> Result:
        if not self._shape.returns_root:
            return JsonResult(value.model_dump_json())
        model = value if internals.is_root_model(type(value)) else self._spec(value)
        if self._is_bare:
            rendered = model.model_dump()
            if isinstance(rendered, str):
                return self._text(rendered)
            if isinstance(rendered, bytes):
                return FileResult(rendered, self._file_type())
        return JsonResult(model.model_dump_json())

    def _text(self, text: str) -> Result:
        if self._is_text:
            return JsonResult(json.dumps(text), text)
        # Of no declared type, a text is sent bare, which the node does with a file alone.
        said = self._shape.output_file or {}
        kind = with_charset(said.get("contentType", TEXT))
        return FileResult(text.encode("utf-8", "replace"), kind)

    def write_response(self, response: Response, streamed: Path | None = None) -> Result:
        """The content of a response that the method returned; ``streamed`` is what it streams."""
        content = content_of(response, streamed)
        if content.content_type.partition(";")[0] == "application/json" and streamed is None:
            return JsonResult(bytes(response.body).decode())
        return content

    def _json_piece(self, piece: Any) -> str:
        try:
            if isinstance(piece, (str, bytes)):
                return json.dumps(piece if isinstance(piece, str) else piece.decode())
            model = self._spec(piece) if self._shape.returns_root else piece
            return str(model.model_dump_json())
        except (ValidationError, PydanticSerializationError, TypeError, ValueError) as error:
            raise output_invalid(self._endpoint, error) from error

    def _encoded(self, piece: Any) -> bytes:
        if isinstance(piece, bytes):
            return piece
        return (piece if isinstance(piece, str) else self._json_piece(piece)).encode()

    def _file_type(self) -> str:
        media_type = self._shape.media_type
        return BINARY if media_type in _NO_CONTENT_TYPES else with_charset(media_type)


def _picture(image: Any) -> FileResult:
    buffer = BytesIO()
    kind = image.format or "PNG"
    image.save(buffer, format=kind)
    return FileResult(buffer.getvalue(), f"image/{kind.lower()}")
