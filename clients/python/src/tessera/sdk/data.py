"""Arrays and tables as JSON."""

from __future__ import annotations

import re
from typing import Any, get_args, get_origin

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from .executable import IncomingCall

_DOUBLES_TYPE = re.compile(r"application/vnd\.tessera\.doubles;shape=(\d+(?:,\d+)*)")
"""Of an array that came as JSON, as the node sends a large one."""


class ArrayJson:
    """Annotates ``numpy.ndarray``: nested lists of numbers. ``NDArray[np.float32]`` has a type."""

    def __init__(self, hint: Any) -> None:
        self._dtype = dtype_of(hint)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return _converted(self._read, lambda array: array.tolist(), {"type": "array", "items": {}})

    def _read(self, value: Any, info: core_schema.ValidationInfo) -> Any:
        import numpy

        sent = doubles_of(value, info.context)
        array = numpy.asarray(value if sent is None else sent, dtype=self._dtype)
        if array.dtype == object:
            raise ValueError("must be nested lists of the same lengths")
        return array


class TableJson:
    """Annotates ``pandas.DataFrame``: a list of rows, or the columns by name."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        rows = {"type": "array", "items": {"type": "object"}}
        columns = {"type": "object", "additionalProperties": {"type": "array"}}
        return _converted(
            lambda value, _: _read_table(value),
            lambda table: table.to_dict(orient="records"),
            {"anyOf": [rows, columns]},
        )


def dtype_of(hint: Any) -> Any:
    """The ``numpy.float32`` of ``NDArray[numpy.float32]``; None for an array of any type."""
    arguments = get_args(hint)
    types = get_args(arguments[1]) if len(arguments) == 2 else ()
    return types[0] if types and isinstance(types[0], type) else None


def takes_doubles(hint: Any) -> bool:
    """True for an array that doubles make, as its numbers in JSON do.

    Validators of the author, who may look at what is sent, stand in an ``Annotated``.
    """
    kind = get_origin(hint) or hint
    if not isinstance(kind, type) or f"{kind.__module__}.{kind.__name__}" != "numpy.ndarray":
        return False
    import numpy

    return dtype_of(hint) in (None, numpy.float16, numpy.float32, numpy.float64)


def doubles_of(value: Any, call: Any) -> Any:
    """The array that is a file of the call; None for every value that is its JSON."""
    if not isinstance(value, dict) or list(value) != ["$array"]:
        return None
    index = value["$array"]
    if not isinstance(call, IncomingCall) or type(index) is not int:
        return None
    if not 0 <= index < len(call.files):
        return None
    file = call.files[index]
    found = _DOUBLES_TYPE.fullmatch(file.content_type)
    if found is None or file.data is None:
        return None
    import numpy

    shape = tuple(map(int, found[1].split(",")))
    return numpy.frombuffer(bytearray(file.data), dtype="<f8").reshape(shape)


def _read_table(value: Any) -> Any:
    import pandas

    if isinstance(value, pandas.DataFrame):
        return value
    return pandas.DataFrame(value)


def _converted(read: Any, write: Any, json_schema: dict[str, Any]) -> core_schema.CoreSchema:
    def describe(_: core_schema.CoreSchema, __: GetJsonSchemaHandler) -> dict[str, Any]:
        return json_schema

    return core_schema.with_info_plain_validator_function(
        read,
        serialization=core_schema.plain_serializer_function_ser_schema(write),
        metadata={"pydantic_js_functions": [describe]},
    )
