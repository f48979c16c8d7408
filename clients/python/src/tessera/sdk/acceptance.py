"""What pydantic surely refuses, as JSON Schema, by which the node checks arguments.

The JSON Schema of a type describes what callers should send; pydantic takes more: ``"1"`` for an
integer, repeated members of a set, an alias or the name, and whatever a validator that runs before
makes something of. So what the node refuses is read from the core schema, which says how a value is
validated. A part that is not known here is anything: the worker decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = dict[str, Any]

_MAX_DEPTH = 64
_MAX_PARTS = 2_000
"""Of a schema; one that is larger is left to the worker, so that manifests stay small."""
_MAX_SAFE_INTEGER = 2**53 - 1

_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}
_JSON_TYPES = ("string", "number", "boolean", "null", "array", "object")
_SAME_PATTERN = re.compile(r"[A-Za-z0-9 _^$\[\]{}()|,+*?-]*")
"""Patterns that mean the same in JavaScript: no escapes, no flags, no dot."""


def accepted(core_schema: Mapping[str, Any]) -> Schema:
    """The JSON Schema of all that validation may take, from JSON."""
    reader = _Reader()
    schema = reader.read(core_schema, 0)
    if reader.parts > _MAX_PARTS:
        return {}
    return {**schema, "$defs": reader.definitions} if reader.definitions else schema


class _Reader:
    def __init__(self) -> None:
        self.parts = 0
        self.definitions: dict[str, Schema] = {}
        self._names: dict[str, str] = {}
        self._config: Mapping[str, Any] = {}

    def read(self, schema: Mapping[str, Any], depth: int) -> Schema:
        self.parts += 1
        read = _READERS.get(schema["type"])
        if read is None or depth > _MAX_DEPTH or self.parts > _MAX_PARTS:
            return {}
        return read(self, schema, depth + 1)

    def integer(self, schema: Mapping[str, Any], _: int) -> Schema:
        return {
            "type": ["integer", "string", "boolean"],
            "describedAs": "integer",
            **_bounds(schema),
        }

    def number(self, schema: Mapping[str, Any], _: int) -> Schema:
        kinds = ["number", "string", "boolean"]
        return {"type": kinds, "describedAs": "number", **_bounds(schema)}

    def text(self, schema: Mapping[str, Any], _: int) -> Schema:
        if self._said(schema, "coerce_numbers_to_str"):
            return {}
        found: Schema = {"type": "string"}
        transforms = ("strip_whitespace", "to_lower", "to_upper")
        if any(self._said(schema, name, f"str_{name}") for name in transforms):
            return found
        for name, keyword in (("min_length", "minLength"), ("max_length", "maxLength")):
            if isinstance(schema.get(name), int):
                found[keyword] = schema[name]
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and _SAME_PATTERN.fullmatch(pattern):
            found["pattern"] = pattern
        return found

    def literal(self, schema: Mapping[str, Any], _: int) -> Schema:
        expected = list(schema["expected"])
        return {"enum": expected} if all(type(each) is str for each in expected) else {}

    def enumeration(self, schema: Mapping[str, Any], _: int) -> Schema:
        values = [member.value for member in schema["members"]]
        is_plain = schema.get("missing") is None and all(type(each) is str for each in values)
        return {"enum": values} if is_plain else {}

    def array(self, schema: Mapping[str, Any], depth: int) -> Schema:
        found: Schema = {"type": "array"}
        items = self.read(schema.get("items_schema", {"type": "any"}), depth)
        if items:
            found["items"] = items
        if isinstance(schema.get("min_length"), int):
            found["minItems"] = schema["min_length"]
        # Members of a set may be repeated.
        if isinstance(schema.get("max_length"), int) and schema["type"] == "list":
            found["maxItems"] = schema["max_length"]
        return found

    def mapping(self, schema: Mapping[str, Any], depth: int) -> Schema:
        values = self.read(schema.get("values_schema", {"type": "any"}), depth)
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}

    def nullable(self, schema: Mapping[str, Any], depth: int) -> Schema:
        return _any_of([self.read(schema["schema"], depth), {"type": "null"}])

    def union(self, schema: Mapping[str, Any], depth: int) -> Schema:
        choices = [each[0] if isinstance(each, tuple) else each for each in schema["choices"]]
        return _any_of([self.read(each, depth) for each in choices])

    def both(self, schema: Mapping[str, Any], depth: int) -> Schema:
        names = ("lax_schema", "strict_schema", "json_schema", "python_schema")
        return _any_of([self.read(schema[name], depth) for name in names if name in schema])

    def inner(self, schema: Mapping[str, Any], depth: int) -> Schema:
        return self.read(schema["schema"], depth)

    def default(self, schema: Mapping[str, Any], depth: int) -> Schema:
        is_replaced = schema.get("on_error", "raise") != "raise"
        return {} if is_replaced else self.read(schema["schema"], depth)

    def prepared(self, schema: Mapping[str, Any], _: int) -> Schema:
        """What a validator makes a list of may be a text: a form does not make one of it before."""
        is_list = schema["schema"]["type"] in ("list", "set", "frozenset", "tuple")
        return {"type": list(_JSON_TYPES)} if is_list else {}

    def chain(self, schema: Mapping[str, Any], depth: int) -> Schema:
        return self.read(schema["steps"][0], depth)

    def model(self, schema: Mapping[str, Any], depth: int) -> Schema:
        if schema.get("custom_init"):
            return {}
        outer, self._config = self._config, schema.get("config", self._config)
        try:
            return self.read(schema["schema"], depth)
        finally:
            self._config = outer

    def fields(self, schema: Mapping[str, Any], depth: int) -> Schema:
        outer, self._config = self._config, schema.get("config", self._config)
        try:
            return self._object(schema, depth)
        finally:
            self._config = outer

    def _object(self, schema: Mapping[str, Any], depth: int) -> Schema:
        fields = schema["fields"]
        named = (
            fields.items()
            if isinstance(fields, Mapping)
            else [(field["name"], field) for field in fields]
        )
        properties: dict[str, Schema] = {}
        required: list[str] = []
        is_closed = self._extra(schema) == "forbid"
        for name, field in named:
            keys = self._keys(name, field)
            if keys is None:
                is_closed = False
                continue
            value = self.read(field["schema"], depth)
            for key in keys:
                properties[key] = value
            if len(keys) == 1 and _is_required(schema, field):
                required += keys
        found: Schema = {"type": "object", "properties": properties}
        if required:
            found["required"] = required
        if is_closed:
            found["additionalProperties"] = False
        return found

    def _keys(self, name: str, field: Mapping[str, Any]) -> list[str] | None:
        """The names under which a field is found; None where that is not said by names."""
        alias = field.get("validation_alias")
        if alias is None:
            return [name]
        config = self._config
        by_name = config.get("populate_by_name") or config.get("validate_by_name")
        by_alias = config.get("validate_by_alias", True)
        if not isinstance(alias, str):
            return None
        return [*([alias] if by_alias else []), *([name] if by_name or not by_alias else [])]

    def _extra(self, schema: Mapping[str, Any]) -> Any:
        return schema.get("extra_behavior", self._config.get("extra_fields_behavior"))

    def _said(self, schema: Mapping[str, Any], name: str, configured: str | None = None) -> bool:
        return bool(schema.get(name, self._config.get(configured or name)))

    def with_definitions(self, schema: Mapping[str, Any], depth: int) -> Schema:
        new = [each for each in schema["definitions"] if each["ref"] not in self._names]
        for each in new:
            self._names[each["ref"]] = f"d{len(self._names)}"
        for each in new:
            self.definitions[self._names[each["ref"]]] = self.read(each, depth)
        return self.read(schema["schema"], depth)

    def reference(self, schema: Mapping[str, Any], _: int) -> Schema:
        name = self._names.get(schema["schema_ref"])
        return {} if name is None else {"$ref": f"#/$defs/{name}"}


def _of_type(*kinds: str) -> Callable[[_Reader, Mapping[str, Any], int], Schema]:
    return lambda _reader, _schema, _depth: {"type": kinds[0] if len(kinds) == 1 else list(kinds)}


_READERS: dict[str, Callable[[_Reader, Mapping[str, Any], int], Schema]] = {
    "none": _of_type("null"),
    "bool": lambda *_: {"type": ["boolean", "number", "string"], "describedAs": "boolean"},
    "int": _Reader.integer,
    "float": _Reader.number,
    "decimal": lambda *_: {"type": ["number", "string", "boolean"], "describedAs": "number"},
    "str": _Reader.text,
    "bytes": _of_type("string"),
    "date": _of_type("string", "number"),
    "time": _of_type("string", "number"),
    "datetime": _of_type("string", "number"),
    "timedelta": _of_type("string", "number"),
    "literal": _Reader.literal,
    "enum": _Reader.enumeration,
    "list": _Reader.array,
    "set": _Reader.array,
    "frozenset": _Reader.array,
    "tuple": _of_type("array"),
    "dict": _Reader.mapping,
    "nullable": _Reader.nullable,
    "union": _Reader.union,
    "lax-or-strict": _Reader.both,
    "json-or-python": _Reader.both,
    "function-after": _Reader.inner,
    "function-before": _Reader.prepared,
    "function-wrap": _Reader.prepared,
    "custom-error": _Reader.inner,
    "default": _Reader.default,
    "chain": _Reader.chain,
    "model": _Reader.model,
    "model-fields": _Reader.fields,
    "typed-dict": _Reader.fields,
    "dataclass": _Reader.model,
    "dataclass-args": _Reader.fields,
    "json": _of_type("string"),
    "url": _of_type("string"),
    "multi-host-url": _of_type("string"),
    "uuid": _of_type("string"),
    "definitions": _Reader.with_definitions,
    "definition-ref": _Reader.reference,
}


def _bounds(schema: Mapping[str, Any]) -> Schema:
    found: dict[str, Any] = {keyword: schema.get(name) for name, keyword in _BOUNDS.items()}
    return {
        keyword: bound
        for keyword, bound in found.items()
        # A double holds no larger integer, and then the comparison may be wrong.
        if type(bound) in (int, float) and abs(bound) <= _MAX_SAFE_INTEGER
    }


def _is_required(schema: Mapping[str, Any], field: Mapping[str, Any]) -> bool:
    if schema["type"] == "typed-dict":
        return bool(field.get("required", schema.get("total", True)))
    inner = field["schema"]
    while "schema" in inner and inner["type"] not in ("default", "definitions"):
        # Validators stand around a default.
        inner = inner["schema"]
    return bool(inner["type"] not in ("default", "definitions"))


def _any_of(choices: list[Schema]) -> Schema:
    """One of them; types alone are put together."""
    if any(not each for each in choices):
        return {}
    if all(set(each) <= {"type"} for each in choices):
        kinds = [kind for each in choices for kind in _list(each["type"])]
        return {"type": list(dict.fromkeys(kinds))}
    distinct = [each for at, each in enumerate(choices) if each not in choices[:at]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
