"""Files as arguments and results: ``File``, ``bytes`` and ``pathlib.Path``.

A file argument is its index among the files of the call; its bytes are in memory, or on disk if
they are many.
"""

from __future__ import annotations

import mimetypes
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from .executable import FileResult, IncomingCall, IncomingFile
from .unknown import known_fields
from .uploads import upload_path

DEFAULT_CONTENT_TYPE = "application/octet-stream"


@known_fields
@dataclass(frozen=True)
class FileType:
    """What a file may be: ``Annotated[File, FileType("image/*", max_bytes=1_000_000)]``.

    ``content_type`` is a media type or a range of them. ``File["image/*"]`` is short for it.
    """

    content_type: str | None = None
    max_bytes: int | None = None

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        described: dict[str, Any] = dict(handler(schema))
        if self.content_type is not None:
            described["contentMediaType"] = self.content_type
        if self.max_bytes is not None:
            described["maxLength"] = self.max_bytes
        return described


class File:
    """A file with its name and media type."""

    def __init__(
        self,
        content: bytes | Path,
        *,
        name: str | None = None,
        content_type: str | None = None,
        owned: bool = False,
        upload: tuple[IncomingCall, int] | None = None,
        guessed_type: str | None = None,
    ) -> None:
        self._content = content
        self._owned = owned
        self._upload = upload
        self.name = name
        """What the caller called it; None if nobody did."""
        self.content_type = content_type or guessed_type or DEFAULT_CONTENT_TYPE
        self._says_type = content_type is not None

    def __class_getitem__(cls, content_type: str) -> Any:
        return Annotated[cls, FileType(content_type)]

    @classmethod
    def from_bytes(
        cls, data: bytes, *, name: str | None = None, content_type: str | None = None
    ) -> File:
        """A file of these bytes."""
        guessed = _guess(name)
        return cls(bytes(data), name=name, content_type=content_type, guessed_type=guessed)

    @classmethod
    def from_path(
        cls, path: str | Path, *, name: str | None = None, content_type: str | None = None
    ) -> File:
        """A file on disk. It is read after the function has returned, so it must exist then."""
        found = Path(path)
        if not found.is_file():
            raise FileNotFoundError(f"there is no file {found}")
        chosen = name or found.name
        guessed = _guess(chosen)
        return cls(found, name=chosen, content_type=content_type, guessed_type=guessed)

    @classmethod
    def from_stream(
        cls, chunks: Iterable[bytes], *, name: str | None = None, content_type: str | None = None
    ) -> File:
        """A file of what the chunks contain, which are written to disk."""
        with tempfile.NamedTemporaryFile(prefix="file-", delete=False) as written:
            for chunk in chunks:
                written.write(chunk)
        return cls(
            Path(written.name),
            name=name,
            content_type=content_type,
            owned=True,
            guessed_type=_guess(name),
        )

    @property
    def size(self) -> int:
        """In bytes."""
        content = self._content
        return content.stat().st_size if isinstance(content, Path) else len(content)

    @property
    def path(self) -> Path:
        """Where it is on disk; a file in memory is written there first.

        That of an argument ends with the name that the caller gave it, and exists until the call
        has ended.
        """
        if self._upload is not None:
            self._content = upload_path(*self._upload)
            self._upload = None
        elif not isinstance(self._content, Path):
            self._content = self._write(self._content)
        return self._content

    def read(self) -> bytes:
        """All of its bytes."""
        content = self._content
        return content.read_bytes() if isinstance(content, Path) else content

    def text(self, encoding: str = "utf-8") -> str:
        """Its text. Raises ``UnicodeDecodeError`` for bytes that are none."""
        return self.read().decode(encoding)

    def open(self) -> IO[bytes]:
        """Opens it for reading."""
        import io

        content = self._content
        return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)

    def __repr__(self) -> str:
        return f"File(name={self.name!r}, content_type={self.content_type!r}, size={self.size})"

    def result(self, spec_type: str | None) -> FileResult:
        """As the host sends it; ``spec_type`` is the media type that the endpoint declares.

        It has the type that was given with it, or else the declared one, or else what its name
        and its bytes look like, if that is within a declared range.
        """
        kind = self.content_type
        if spec_type is not None and not self._says_type:
            family = spec_type.partition("/")[0] + "/"
            if not spec_type.endswith("/*"):
                kind = spec_type
            elif spec_type != "*/*" and not kind.startswith(family):
                kind = DEFAULT_CONTENT_TYPE
        return FileResult(self._content, kind, self.name, self._owned)

    def _write(self, data: bytes) -> Path:
        with tempfile.NamedTemporaryFile(prefix="file-", delete=False) as written:
            written.write(data)
        self._owned = True
        return Path(written.name)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return file_schema(lambda file: file)


def file_schema(convert: Any) -> core_schema.CoreSchema:
    """The schema of a file argument that a function takes as what ``convert`` makes of it."""

    def read(value: Any, info: core_schema.ValidationInfo) -> Any:
        call = info.context
        if isinstance(call, IncomingCall) and isinstance(value, int):
            if isinstance(value, bool) or not 0 <= value < len(call.files):
                raise _no_file()
            return convert(_argument(call, value))
        if isinstance(value, File) and call is None:
            return convert(value)
        raise _no_file()

    return core_schema.with_info_plain_validator_function(
        read, metadata={"pydantic_js_functions": [_describe_file]}
    )


def _no_file() -> PydanticCustomError:
    return PydanticCustomError("file_type", "must be a file")


def _describe_file(_: core_schema.CoreSchema, __: GetJsonSchemaHandler) -> dict[str, Any]:
    return {"type": "string", "format": "binary"}


def _argument(call: IncomingCall, index: int) -> File:
    sent: IncomingFile = call.files[index]
    content = sent.path if sent.path is not None else sent.data or b""
    return File(content, name=sent.filename, content_type=sent.content_type, upload=(call, index))


class FileAs:
    """Annotates a type that a file argument is converted to."""

    def __init__(self, convert: Any) -> None:
        self._convert = convert

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return file_schema(self._convert)


BytesFile = Annotated[bytes, FileAs(lambda file: file.read())]
PathFile = Annotated[Path, FileAs(lambda file: file.path)]


def file_of(value: Any, declared: str | None) -> File | None:
    """What a function returned, as a file; None for what is none.

    ``declared`` is the media type that the endpoint has for its result.
    """
    if isinstance(value, File):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return File(bytes(value))
    if isinstance(value, Path):
        return File.from_path(value)
    from .media import write_media

    return write_media(value, declared)


def file_argument(schema: dict[str, Any], *, required: bool) -> tuple[Any, dict[str, Any]] | None:
    """A property that is a file or a list of files: its schema, and its part of ``files``.

    None for any other. One that may be null may be left out instead.
    """
    alternatives = schema.get("anyOf")
    if alternatives is not None:
        files = [each for each in alternatives if each != {"type": "null"}]
        if len(files) == 1 and len(files) < len(alternatives):
            about: dict[str, Any] = {
                key: schema[key] for key in ("title", "description") if key in schema
            }
            return file_argument({**files[0], **about}, required=False)
        return None
    spec = _spec_of(schema)
    if spec is not None:
        return _plain(schema), {**spec, "required": required, "array": False}
    items = schema.get("items") if schema.get("type") == "array" else None
    item_spec = _spec_of(items) if isinstance(items, dict) else None
    if item_spec is None:
        return None
    bounds: dict[str, Any] = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
    plain = {**_about(schema), "type": "array", "items": _plain(cast("dict[str, Any]", items))}
    return {**plain, **bounds}, {**item_spec, **bounds, "required": required, "array": True}


def contains_file(schema: Any) -> bool:
    """True when a schema describes a file anywhere inside."""
    if isinstance(schema, dict):
        return _spec_of(schema) is not None or any(map(contains_file, schema.values()))
    return isinstance(schema, list) and any(map(contains_file, schema))


def output_file(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The ``outputFile`` of a result; None for one that is no file."""
    return _spec_of(schema)


def _spec_of(schema: dict[str, Any]) -> dict[str, Any] | None:
    if schema.get("type") != "string" or schema.get("format") != "binary":
        return None
    spec: dict[str, Any] = {}
    if "contentMediaType" in schema:
        spec["contentType"] = schema["contentMediaType"]
    if "maxLength" in schema:
        spec["maxBytes"] = schema["maxLength"]
    return spec


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: schema[key] for key in ("contentMediaType",) if key in schema}
    return {"type": "string", "format": "binary", **kept, **_about(schema)}


def _about(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in ("title", "description") if key in schema}


def _guess(name: str | None) -> str | None:
    return mimetypes.guess_type(name)[0] if name else None
