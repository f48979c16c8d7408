"""The arguments of a function, from its type hints: their schema, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_json
from typing_extensions import NotRequired, TypedDict

from .acceptance import accepted
from .adapters import adapter_of, default_adapter, schema_of, told, violations_of
from .data import takes_doubles
from .executable import CallError, IncomingCall, ServiceError
from .files import contains_file, file_argument
from .special import described


class Arguments:
    """The arguments of a call, by name."""

    def __init__(
        self,
        adapter: TypeAdapter[Any],
        *,
        endpoint: str,
        place: str,
        defaults: Mapping[str, Any] | None = None,
        arrays: Sequence[str] = (),
    ) -> None:
        self._endpoint = endpoint
        self._place = place
        self._validate = adapter.validator.validate_json
        # Those that a type hint makes, and pydantic does not fill in.
        self._made: list[tuple[str, FieldInfo]] = [
            (name, default)
            for name, default in (defaults or {}).items()
            if isinstance(default, FieldInfo) and not default.is_required()
        ]
        self.input = schema_of(adapter, "validation", place)
        self.check = accepted(adapter.core_schema)
        """By which the node checks arguments before they are stored."""
        if self.input.get("type") != "object":
            raise ServiceError(f"{place}: its arguments must be one object, not {self.input}")
        # That of what holds them says nothing to a caller.
        self.input.pop("title", None)
        self._properties: dict[str, Any] = self.input.setdefault("properties", {})
        self.files = self._take_files()
        self.arrays = arrays
        """Those that may be sent as doubles."""
        self._describe_defaults(defaults or {})
        self._names = ", ".join(self._properties) or "none"

    def read(self, call: IncomingCall) -> dict[str, Any]:
        """The arguments by name. Raises ``CallError`` that says which of them are wrong."""
        try:
            given: dict[str, Any] = self._validate(call.arguments, context=call)
        except ValidationError as error:
            raise self._refused(error) from None
        for name, info in self._made:
            if name not in given:
                given[name] = info.get_default(call_default_factory=True)
        return given

    def _take_files(self) -> dict[str, Any]:
        """The arguments that are files, whose schemas become plain ones."""
        files: dict[str, Any] = {}
        properties = self._properties
        required = list(self.input.get("required", []))
        for name, schema in properties.items():
            found = file_argument(schema, required=name in required)
            if found is not None:
                properties[name], files[name] = found
                if name in required and not files[name]["required"]:
                    required.remove(name)
            elif contains_file(schema):
                raise ServiceError(
                    f"{self._place}, parameter {name} has a file inside; "
                    "a file can only be an argument, or in a list that is one"
                )
        if contains_file(self.input.get("$defs", {})):
            raise ServiceError(
                f"{self._place}: a model has a file inside; "
                "a file can only be an argument, or in a list that is one"
            )
        if "required" in self.input:
            self.input["required"] = required
        return files

    def _describe_defaults(self, defaults: Mapping[str, Any]) -> None:
        """Adds the defaults that JSON can carry to the schema."""
        properties = self._properties
        for name, given in defaults.items():
            default = given.default if isinstance(given, FieldInfo) else given
            if default is PydanticUndefined or name in self.files:
                continue
            try:
                to_json(default, inf_nan_mode="strings")
            except PydanticSerializationError:
                continue
            if isinstance(default, (str, int, float, bool, list, dict, type(None))):
                properties[name] = {**properties[name], "default": default}

    def _refused(self, error: ValidationError) -> CallError:
        violations = violations_of(error)
        violations = [
            (path, f"no such argument (there are: {self._names})")
            if message == "Extra inputs are not permitted" and "." not in path
            else (path, message)
            for path, message in violations
        ]
        return CallError(
            f"arguments of {self._endpoint} are invalid: {told(violations)}",
            code="invalid_argument",
            reason="ARGUMENTS_INVALID",
            violations=violations,
        )


def arguments_of(
    parameters: Mapping[str, tuple[Any, Any]], *, endpoint: str, place: str
) -> Arguments:
    """The arguments of a function, from the hint and the default of each parameter."""
    fields = {
        name: _field(hint, default, f"{place}, parameter {name}")
        for name, (hint, default) in parameters.items()
    }
    adapter = adapter_of(
        TypedDict("Arguments", fields),  # type: ignore[operator]
        place,
        config=ConfigDict(extra="forbid"),
    )
    defaults = {name: default for name, (_, default) in parameters.items()}
    arrays = [name for name, (hint, _) in parameters.items() if takes_doubles(hint)]
    return Arguments(adapter, endpoint=endpoint, place=place, defaults=defaults, arrays=arrays)


def _field(hint: Any, default: Any, at: str) -> Any:
    described_hint = described(hint)
    if isinstance(default, FieldInfo):
        _check_default(hint, default.default, at)
        described_hint = Annotated[described_hint, default]
        return described_hint if default.is_required() else NotRequired[described_hint]
    adapter_of(described_hint, at)
    _check_default(hint, default, at)
    return described_hint if default is PydanticUndefined else NotRequired[described_hint]


_OTHER_TYPE = re.compile(r".*_type|literal_error|enum|is_\w+_of|none_required|missing")
"""The errors of pydantic that tell of a type, not of a bound or a validator of the author."""


def _check_default(hint: Any, default: Any, at: str) -> None:
    """Raises for a default of another type: callers would be told of what the function gets not."""
    if default is PydanticUndefined or default is ...:
        return
    remedy = "add | None to its type hint" if default is None else "change one of both"
    about = f"{at}: its default {default!r} is not what its type hint says"
    # Those that do not change stand for lists and sets: linters ask for them as defaults.
    stands_in = isinstance(default, (tuple, frozenset))
    try:
        read = default_adapter(hint).validate_python(default, strict=not stands_in)
    except ValidationError as error:
        if all(_OTHER_TYPE.fullmatch(each["type"]) for each in error.errors()):
            raise ServiceError(f"{about} ({told(violations_of(error))}); {remedy}") from None
        return
    except Exception:  # A type without a schema, or a validator that wants what only a call has.
        return
    given = next((kind for kind in (dict, str, bytes) if isinstance(default, kind)), None)
    if given is not None and not isinstance(read, given):
        # Strict or not, some types are made of these, which nobody does with a default.
        said = f"the function would get a {given.__name__}, not a {type(read).__name__}"
        raise ServiceError(f"{about}: {said}; {remedy}")
