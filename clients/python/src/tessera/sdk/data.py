"""Arrays and tables as JSON."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema


class ArrayJson:
    """Annotates ``numpy.ndarray``: nested lists of numbers. ``NDArray[np.float32]`` has a type."""

    def __init__(self, hint: Any) -> None:
        self._dtype = dtype_of(hint)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return _converted(self._read, lambda array: array.tolist(), {"type": "array", "items": {}})

    def _read(self, value: Any) -> Any:
        import numpy

        array = numpy.asarray(value, dtype=self._dtype)
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
            _read_table, lambda table: table.to_dict(orient="records"), {"anyOf": [rows, columns]}
        )


def dtype_of(hint: Any) -> Any:
    """The ``numpy.float32`` of ``NDArray[numpy.float32]``; None for an array of any type."""
    arguments = get_args(hint)
    types = get_args(arguments[1]) if len(arguments) == 2 else ()
    return types[0] if types and isinstance(types[0], type) else None


def _read_table(value: Any) -> Any:
    import pandas

    if isinstance(value, pandas.DataFrame):
        return value
    return pandas.DataFrame(value)


def _converted(read: Any, write: Any, json_schema: dict[str, Any]) -> core_schema.CoreSchema:
    def describe(_: core_schema.CoreSchema, __: GetJsonSchemaHandler) -> dict[str, Any]:
        return json_schema

    return core_schema.no_info_plain_validator_function(
        read,
        serialization=core_schema.plain_serializer_function_ser_schema(write),
        metadata={"pydantic_js_functions": [describe]},
    )
