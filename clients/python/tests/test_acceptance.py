"""The node refuses nothing that pydantic takes, whose own schema of a value it reads."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from typing_extensions import NotRequired, TypedDict

from tessera.sdk.acceptance import accepted


class Colour(str, enum.Enum):
    RED = "red"


class Size(enum.Enum):
    SMALL = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.SMALL


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="forbid")
    given: int = Field(alias="givenName", ge=0, le=10)
    chosen: int = Field(1, validation_alias=AliasChoices("a", "b"))


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    name: Annotated[str, StringConstraints(max_length=3)]


class Split(BaseModel):
    words: list[str]
    count: int = 0

    @field_validator("words", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return value.split() if isinstance(value, str) else value


class Wrapped(BaseModel):
    value: int

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"value": value}


class Node(BaseModel):
    children: list[Node] = []


class Row(TypedDict):
    a: int
    b: NotRequired[float]


TYPES: list[Any] = [
    *(bool, int, float, str, Decimal, date, datetime, timedelta, UUID, HttpUrl, None),
    *(list[int], set[float], frozenset[str], tuple[int, str], tuple[int, ...], dict[str, int]),
    *(int | None, int | str, Literal["a", "b"], Literal[1, 2], Colour, Size),
    *(Aliased, Stripped, Split, Wrapped, Node, Row, Any),
    Annotated[int, Field(gt=2**53, lt=2**63)],
    Annotated[list[int], Field(min_length=1, max_length=2)],
    Annotated[set[int], Field(min_length=2, max_length=2)],
    Annotated[int, BeforeValidator(lambda value: len(value) if isinstance(value, list) else value)],
    Annotated[str, AfterValidator(str.upper), Field(min_length=2)],
    Annotated[str, StringConstraints(pattern=r"^\w+$")],
    Annotated[str, StringConstraints(pattern=r"^[a-z]+$")],
]

JSON = [
    *("null", "true", "0", "1", "1.0", "1.5", "-1", "9007199254740993", "1e400", "NaN", '"1"'),
    *('""', '"a"', '"b"', '"red"', '"ä"', '"abc def"', '" abc "', '"2026-01-31"', '"true"'),
    *('"2026-01-31T10:00:00"', '"P1D"', '"http://x"', '"{}"', "[]", "[1]", "[1,1,2]", "[1,2,3]"),
    *('["1","2"]', '["a",1]', '[1,"a"]', '[{"a":1}]', "{}", '{"a":1}', '{"a":"1","b":2}'),
    *('{"givenName":1}', '{"given":"3","b":2}', '{"given":11}', '{"given":1,"x":1}'),
    *('{"name":" abc "}', '{"name":"abcd"}', '{"words":"a b"}', '{"words":["a"],"count":"2"}'),
    *('{"value":1}', '{"children":[{"children":[]}]}', '{"children":[1]}'),
    '"12345678-1234-5678-1234-567812345678"',
]


def fits(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any]) -> bool:
    """Whether a value has the schema, of whose keywords these are all."""
    if "$ref" in schema:
        return fits(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root)
    if "anyOf" in schema:
        return any(fits(each, value, root) for each in schema["anyOf"])
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return (not kinds or any(_is(value, kind) for kind in kinds)) and _is_within(
        schema, value, root
    )


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    if isinstance(value, (int, float)):
        return kind == "number" or (kind == "integer" and value % 1 == 0)
    return isinstance(value, {"string": str, "array": list, "object": dict}.get(kind, ()))


def _is_within(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any]) -> bool:
    if isinstance(value, list):
        items = schema.get("items", {})
        is_long = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return is_long and all(fits(items, each, root) for each in value)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        return all(name in value for name in schema.get("required", [])) and all(
            fits(properties[name], member, root)
            if name in properties
            else others is not False and fits(others, member, root)
            for name, member in value.items()
        )
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (
            value >= schema.get("minimum", value)
            and value <= schema.get("maximum", value)
            and not value <= schema.get("exclusiveMinimum", math.nan)
            and not value >= schema.get("exclusiveMaximum", math.nan)
        )
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
    return True


@pytest.mark.parametrize("hint", TYPES, ids=str)
def test_what_pydantic_takes_is_not_refused_before(hint: Any) -> None:
    adapter = TypeAdapter(hint)
    schema = accepted(adapter.core_schema)
    for text in JSON:
        try:
            adapter.validate_json(text)
        except ValidationError:
            continue
        value = json.loads(text)
        if isinstance(value, float) and value != value:
            continue  # The node checks no body with such a number.
        assert fits(schema, value, schema), (text, schema)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "[]"),
        (int, "1.5"),
        (str, "1"),
        (list[float], '{"a":1}'),
        (list[float], "[[1]]"),
        (int | None, "{}"),
        (Colour, '"blue"'),
        (Row, "{}"),
        (dict[str, int], '{"a":[]}'),
        (Node, '{"children":[1]}'),
    ],
)
def test_what_is_surely_wrong_is_refused_before(hint: Any, text: str) -> None:
    schema = accepted(TypeAdapter(hint).core_schema)
    assert not fits(schema, json.loads(text), schema)


def test_a_schema_that_is_too_large_is_left_to_the_worker() -> None:
    fields: Any = {f"field{number}": dict[str, list[int]] for number in range(2_000)}
    assert accepted(TypeAdapter(TypedDict("Wide", fields)).core_schema) == {}
