"""Types as pydantic reads them: adapters, JSON Schemas, and what is wrong with a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from .executable import ServiceError


class _PlainJsonSchema(GenerateJsonSchema):
    """JSON Schema without a title for each member, which repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def hints_of(function: Callable[..., Any], place: str) -> dict[str, Any]:
    """The type hints of a function. Raises ``ServiceError`` for those that cannot be read."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as error:  # Whatever the evaluation of a hint raises.
        raise ServiceError(f"{place}: its type hints cannot be read: {error}") from error


def adapter_of(hint: Any, at: str, config: ConfigDict | None = None) -> TypeAdapter[Any]:
    """Reads and writes values of a type. Raises ``ServiceError`` for one without a schema."""
    try:
        if config is not None:
            hint.__pydantic_config__ = config
        return TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        name = getattr(hint, "__name__", str(hint))
        raise ServiceError(
            f"{at}: the type {name} has no schema; "
            "use a type that pydantic knows, a model, a dataclass or a TypedDict"
        ) from error


def default_adapter(hint: Any) -> TypeAdapter[Any]:
    """Checks defaults, which are values of the program: classes that no caller sends among them."""
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # Of a model, which has its own.
        return TypeAdapter(hint)


def schema_of(adapter: TypeAdapter[Any], mode: Any, at: str) -> dict[str, Any]:
    """Its JSON Schema, for ``validation`` or ``serialization``."""
    try:
        return adapter.json_schema(mode=mode, schema_generator=_PlainJsonSchema)
    except PydanticUserError as error:
        first = str(error).splitlines()[0]
        raise ServiceError(f"{at}: its type has no JSON Schema: {first}") from error


def is_text(schema: Any) -> bool:
    """True for the core schema of texts, rather than of values that JSON writes as strings."""
    while isinstance(schema, Mapping):
        kind = schema.get("type")
        if kind == "enum":
            return issubclass(schema["cls"], str)
        if kind == "literal":
            return all(isinstance(each, str) for each in schema["expected"])
        if kind == "model-fields":
            schema = schema["fields"].get("root", {}).get("schema")
        elif kind == "chain":
            schema = schema["steps"][-1]
        elif kind == "str":
            return True
        else:
            schema = schema.get("schema")
    return False


def violations_of(error: ValidationError) -> list[tuple[str, str]]:
    """The dotted path of each wrong member, and what is wrong with it."""
    return [
        (".".join(str(part) for part in each["loc"]), each["msg"])
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def told(violations: list[tuple[str, str]]) -> str:
    """The violations in one text."""
    return "; ".join(f"{path}: {message}" if path else message for path, message in violations)
