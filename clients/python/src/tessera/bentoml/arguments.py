"""Reads the arguments of a call as BentoML reads the body of a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError, create_model
from pydantic_core import from_json
from starlette.datastructures import Headers, UploadFile

from ..sdk.data import doubles_of
from ..sdk.executable import IncomingCall, IncomingFile
from ..sdk.uploads import upload_path
from . import internals
from .failures import arguments_invalid, file_unreadable
from .manifest import Shape, mentions_path

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""By position, and by name."""


class ArgumentsReader:
    """Reads the arguments of one method."""

    def __init__(self, method: Any, shape: Shape) -> None:
        self._endpoint: str = method.name
        self._spec = method.input_spec
        self._shape = shape
        self._names = list(self._spec.model_fields)
        self._paths = {name for name in shape.files if _takes_path(self._spec, name, shape.root)}
        self._model = _model_by_name(self._spec, shape)
        self._read: Callable[[IncomingCall], Any] = (
            self._read_model
            if self._model is not None
            else self._read_root
            if shape.root is not None
            else self._read_files
            if shape.files
            else self._read_arrays
            if shape.arrays
            else self._read_json
        )

    def read(self, call: IncomingCall) -> Arguments:
        """Raises ``CallError`` for arguments that the input spec refuses."""
        try:
            read = self._read(call)
        except ValidationError as error:
            raise arguments_invalid(self._endpoint, error, self._shape.root) from None
        except (OSError, KeyError) as error:
            # Pillow says so of what is no picture.
            raise file_unreadable(self._endpoint, error) from error
        if self._shape.takes_root:
            is_wrapped = self._shape.root is not None and not self._shape.is_model
            return (read.root if is_wrapped else read,), {}
        named = {name: getattr(read, name) for name in self._names}
        args: tuple[Any, ...] = ()
        if internals.ARGS in named:
            args = (named.pop(internals.ARGS),)
        if internals.KWARGS in named:
            named.update(named.pop(internals.KWARGS))
        return args, named

    def _read_json(self, call: IncomingCall) -> Any:
        return self._spec.model_validate_json(call.arguments)

    def _read_arrays(self, call: IncomingCall) -> Any:
        """As JSON, unless some of them came as doubles."""
        if '"$array"' not in call.arguments:
            return self._read_json(call)
        values = from_json(call.arguments)
        for name, dtype in self._shape.arrays.items():
            sent = doubles_of(values.get(name), call)
            if sent is not None:
                values[name] = sent if dtype is None else sent.astype(dtype, copy=False)
        return self._spec.model_validate(values)

    def _read_files(self, call: IncomingCall) -> Any:
        values = json.loads(call.arguments)
        for name in self._shape.files:
            if values.get(name) is not None:
                values[name] = self._files(call, name, values[name])
        return self._spec.model_validate(values)

    def _read_model(self, call: IncomingCall) -> Any:
        assert self._model is not None, "the argument is no model"
        return getattr(self._model.model_validate_json(call.arguments), self._shape.root or "")

    def _read_root(self, call: IncomingCall) -> Any:
        root = self._shape.root or ""
        values = json.loads(call.arguments)
        if root not in values:
            return self._spec()
        value = values[root]
        if root in self._shape.files:
            file = call.files[value]
            is_file = root in self._paths or "contentType" in self._shape.files[root]
            value = self._file(call, root, value) if is_file else _bytes_of(file)
        return self._spec.model_validate(value)

    def _files(self, call: IncomingCall, name: str, value: int | list[int]) -> Any:
        if isinstance(value, list):
            return [self._file(call, name, each) for each in value]
        return self._file(call, name, value)

    def _file(self, call: IncomingCall, name: str, index: int) -> Path | UploadFile:
        file = call.files[index]
        if name in self._paths:
            return upload_path(call, index)
        content = open(file.path, "rb") if file.path else BytesIO(file.data or b"")  # noqa: SIM115
        return UploadFile(
            content,
            size=file.size,
            filename=file.filename,
            headers=_headers_of(file.content_type),
        )


def _headers_of(content_type: str) -> Headers:
    """A picture comes without its type, which BentoML would take for the name of Pillow's format.

    Pillow looks at the bytes: clients call pictures ``image/jpg``, or what they are not.
    """
    is_picture = content_type.lower().startswith("image/")
    return Headers() if is_picture else Headers({"content-type": content_type})


def _model_by_name(spec: Any, shape: Shape) -> Any:
    """Reads a model before ``/`` that need not be an object; None for every other argument."""
    if shape.root is None or not shape.is_model:
        return None
    fields: dict[str, Any] = {shape.root: (spec, ...)}
    return create_model("Input", **fields)


def _takes_path(spec: Any, name: str, root: str | None) -> bool:
    """True for an argument that the function gets as a path, alone or in a list."""
    field = spec.model_fields["root" if root is not None else name]
    return mentions_path(field.annotation)


def _bytes_of(file: IncomingFile) -> bytes:
    return file.path.read_bytes() if file.path is not None else file.data or b""
