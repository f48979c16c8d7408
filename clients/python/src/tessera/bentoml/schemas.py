"""Translates BentoML's schemas into JSON Schema.

BentoML adds the types ``file``, ``tensor`` and ``dataframe``, which validators refuse. Keywords by
which the node would refuse what pydantic takes are left out: its ``date-time`` needs a time zone,
and patterns of Python are not those of JavaScript.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_VALUES = frozenset(
    {"default", "examples", "example", "enum", "const", "required", "discriminator"}
)
"""Keywords whose values are no schemas."""
_MAPS = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
"""Keywords whose values are schemas by name."""
_OWN = frozenset({"root_input", "pil"})
"""Keywords that only BentoML's clients know."""
_PYTHON_PATTERN = re.compile(r"\(\?(?![:=!]|<[=!])|\\[AZz]|[*+?}]\+")
_MAX_DEPTH = 64


def translate_input(schema: Mapping[str, Any]) -> Schema:
    """The schema of arguments, which takes what BentoML takes."""
    return _root(schema, _OWN | {"format"})


def translate_output(schema: Mapping[str, Any]) -> Schema:
    """The schema of a result, which nobody is checked by."""
    return _root(schema, _OWN)


def _root(schema: Mapping[str, Any], dropped: frozenset[str]) -> Schema:
    translated = _schema(schema, dropped, _MAX_DEPTH)
    return translated if isinstance(translated, dict) else {}


def file_of(schema: Mapping[str, Any]) -> Schema | None:
    """The ``FileArgument`` of the node, without ``required``; None for what is no file."""
    for each in (schema, *schema.get("anyOf", ())):
        if each.get("type") == "file":
            return {"array": False, **_file_facts(each)}
        if each.get("type") == "array" and file_of(each.get("items", {})):
            bounds = {key: each[key] for key in ("minItems", "maxItems") if key in each}
            return {"array": True, **_file_facts(each["items"]), **bounds}
    return None


def describe_file(schema: Mapping[str, Any], file: Mapping[str, Any]) -> Schema:
    """The schema of an argument that is a file, as the node's manifest has it."""
    one: Schema = {"type": "string", "format": "binary"}
    if "contentType" in file:
        one["contentMediaType"] = file["contentType"]
    told = {key: schema[key] for key in ("title", "description") if key in schema}
    return {"type": "array", "items": one, **told} if file["array"] else {**one, **told}


def _file_facts(schema: Mapping[str, Any]) -> Schema:
    content_type = schema.get("content_type")
    if content_type is None and schema.get("format") in ("image", "audio", "video"):
        content_type = f"{schema['format']}/*"
    return {} if content_type is None else {"contentType": content_type}


def _schema(schema: Any, dropped: frozenset[str], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth == 0:
        return schema if isinstance(schema, bool) else {}
    kind = schema.get("type")
    told = {key: schema[key] for key in ("title", "description") if key in schema}
    if kind == "tensor":
        return {"type": "array", "items": {}, **told, "description": _tensor_said(schema)}
    if kind == "dataframe":
        return {"type": ["array", "object"], **told, "description": _dataframe_said(schema)}
    if kind == "file":
        return told
    return {
        key: _member(key, value, dropped, depth - 1)
        for key, value in schema.items()
        if key not in dropped and _is_portable(key, value)
    }


def _is_portable(key: str, value: Any) -> bool:
    if key == "pattern":
        return isinstance(value, str) and is_portable_pattern(value)
    return key != "default" or _is_json(value)


def is_portable_pattern(pattern: str) -> bool:
    """True for a pattern of Python that is one of JavaScript too."""
    return _PYTHON_PATTERN.search(pattern) is None


def _member(key: str, value: Any, dropped: frozenset[str], depth: int) -> Any:
    if key in _VALUES:
        return list(value) if isinstance(value, tuple) else value
    if key in _MAPS and isinstance(value, Mapping):
        return {name: _schema(each, dropped, depth) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [
            _schema(each, dropped, depth) if isinstance(each, Mapping) else each for each in value
        ]
    return _schema(value, dropped, depth) if isinstance(value, Mapping) else value


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(_is_json(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_json(each) for each in value)
    return isinstance(value, (str, int, type(None)))


def _tensor_said(schema: Mapping[str, Any]) -> str:
    said = [schema.get("description") or "A tensor as nested lists"]
    if schema.get("dtype"):
        said.append(f"of {schema['dtype']}")
    if schema.get("shape"):
        said.append(f"of the shape {' x '.join(str(each) for each in schema['shape'])}")
    return " ".join(said) + "."


def _dataframe_said(schema: Mapping[str, Any]) -> str:
    said = schema.get("description") or "A table: a list of objects, or an object of columns"
    columns = schema.get("columns")
    return f"{said}, with {', '.join(columns)}." if columns else f"{said}."
