"""The arguments and the result of a function, from its type hints: schemas, and their checks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_json
from typing_extensions import NotRequired, TypedDict

from .context import Context
from .executable import CallError, FileResult, IncomingCall, JsonResult, ServiceError
from .files import contains_file, file_argument, file_of, output_file
from .special import as_files, is_file

Json = Mapping[str, Any]


class _PlainJsonSchema(GenerateJsonSchema):
    """JSON Schema without a title for each member, which repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Signature:
    """What a function takes and returns."""

    def __init__(self, function: Callable[..., Any], endpoint: str, place: str) -> None:
        self._endpoint = endpoint
        hints = _hints_of(function, place)
        self.context_name: str | None = None
        self._defaults: dict[str, FieldInfo] = {}
        fields: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            name = parameter.name
            at = f"{place}, parameter {name}"
            hint = hints.get(name, Any)
            if hint is Context or _is_optional_context(hint):
                self.context_name = name
            else:
                fields[name] = self._field(parameter, hint, at)
                properties[name] = _default_of(parameter)
        self._arguments = _adapter(
            TypedDict("Arguments", fields),  # type: ignore[operator]
            place,
            config=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
        )
        self.input = _schema_of(self._arguments, "validation", place)
        self.files = self._take_files(place)
        self._describe_defaults(properties)
        result = as_files(hints.get("return", Any))
        at = f"{place}, its result"
        self._result = None if result is Any else _adapter(result, at)
        # A file has one schema, in and out.
        mode = "validation" if is_file(result) else "serialization"
        self.output: dict[str, Any] = (
            {} if self._result is None else _schema_of(self._result, mode, at)
        )
        self.output_file = output_file(self.output)
        if self.output_file is None and contains_file(self.output):
            raise ServiceError(f"{at} can be one file, not a value with files inside")
        self._validate = self._arguments.validator.validate_json
        self._names = ", ".join(fields) or "none"

    def read(self, call: IncomingCall) -> dict[str, Any]:
        """The arguments by name. Raises ``CallError`` that says which of them are wrong."""
        try:
            given: dict[str, Any] = self._validate(call.arguments, context=call)
        except ValidationError as error:
            raise self._refused(error) from None
        for name, info in self._defaults.items():
            if name not in given:
                given[name] = info.get_default(call_default_factory=True)
        return given

    def write(self, value: Any) -> JsonResult | FileResult:
        """The result as it is sent. Raises ``CallError`` for what the type hint does not allow."""
        if self.output_file is not None:
            return self._write_file(value, self.output_file)
        try:
            if self._result is None:
                json = to_json(value, inf_nan_mode="constants")
            else:
                value = self._result.validate_python(value)
                json = self._result.dump_json(value, by_alias=True)
        except ValidationError as error:
            said = "; ".join(_told(path, message) for path, message in _violations_of(error))
            raise _output_invalid(
                f"{self._endpoint} returned what its type hint does not allow: {said}"
            ) from error
        except (PydanticSerializationError, RecursionError) as error:
            raise self._unserialisable(str(error)) from error
        if b"null" in json or b"NaN" in json or b"Infinity" in json:
            self._refuse_lost_numbers(value)
        text = json.decode()
        return JsonResult(text, value if isinstance(value, str) else None)

    def _write_file(self, value: Any, spec: Json) -> FileResult:
        file = file_of(value)
        if file is None:
            raise _output_invalid(
                f"{self._endpoint} returned {type(value).__name__}, and its type hint is a file"
            )
        return file.result(spec.get("contentType"))

    def _take_files(self, place: str) -> dict[str, Any]:
        """The arguments that are files, whose schemas become plain ones."""
        files: dict[str, Any] = {}
        properties = self.input.get("properties", {})
        required = list(self.input.get("required", []))
        for name, schema in properties.items():
            found = file_argument(schema, required=name in required)
            if found is not None:
                properties[name], files[name] = found
                if name in required and not files[name]["required"]:
                    required.remove(name)
            elif contains_file(schema):
                raise ServiceError(
                    f"{place}, parameter {name} has a file inside; "
                    "a file can only be an argument, or in a list that is one"
                )
        if contains_file(self.input.get("$defs", {})):
            raise ServiceError(
                f"{place}: a model has a file inside; "
                "a file can only be an argument, or in a list that is one"
            )
        if "required" in self.input:
            self.input["required"] = required
        return files

    def _field(self, parameter: inspect.Parameter, hint: Any, at: str) -> Any:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ServiceError(f"{at}: write each argument by name; * and ** have no schema")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ServiceError(f"{at}: arguments are passed by name; remove the / after it")
        default = parameter.default
        hint = as_files(hint)
        if isinstance(default, FieldInfo):
            self._defaults[parameter.name] = default
            hint = Annotated[hint, default]
            if default.is_required():
                del self._defaults[parameter.name]
                return hint
            return NotRequired[hint]
        _adapter(hint, at)
        return hint if default is parameter.empty else NotRequired[hint]

    def _describe_defaults(self, defaults: Mapping[str, Any]) -> None:
        """Adds the defaults that JSON can carry to the schema."""
        properties = self.input.get("properties", {})
        for name, default in defaults.items():
            if default is PydanticUndefined or name not in properties:
                continue
            try:
                to_json(default, inf_nan_mode="strings")
            except PydanticSerializationError:
                continue
            if isinstance(default, (str, int, float, bool, list, dict, type(None))):
                properties[name] = {**properties[name], "default": default}

    def _refused(self, error: ValidationError) -> CallError:
        violations = _violations_of(error)
        violations = [
            (path, f"no such argument (there are: {self._names})")
            if message == "Extra inputs are not permitted" and "." not in path
            else (path, message)
            for path, message in violations
        ]
        said = "; ".join(_told(path, message) for path, message in violations)
        return CallError(
            f"arguments of {self._endpoint} are invalid: {said}",
            code="invalid_argument",
            reason="ARGUMENTS_INVALID",
            violations=violations,
        )

    def _refuse_lost_numbers(self, value: Any) -> None:
        """Raises for a number that JSON does not have, which would be written as null."""
        plain = value if self._result is None else self._result.dump_python(value, by_alias=True)
        path = _non_finite(plain, "")
        if path is not None:
            where = f"{path} in it" if path else "it"
            raise self._unserialisable(f"{where} is not a finite number, which JSON cannot carry")

    def _unserialisable(self, why: str) -> CallError:
        return _output_invalid(f"the result of {self._endpoint} cannot be sent: {why}")


def _output_invalid(message: str) -> CallError:
    return CallError(message, reason="OUTPUT_INVALID")


def _hints_of(function: Callable[..., Any], place: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as error:  # Whatever the evaluation of a hint raises.
        raise ServiceError(f"{place}: its type hints cannot be read: {error}") from error


def _is_optional_context(hint: Any) -> bool:
    return get_origin(hint) is not None and Context in getattr(hint, "__args__", ())


def _default_of(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if isinstance(default, FieldInfo):
        return default.default
    return PydanticUndefined if default is parameter.empty else default


def _adapter(hint: Any, at: str, config: ConfigDict | None = None) -> TypeAdapter[Any]:
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


def _schema_of(adapter: TypeAdapter[Any], mode: Any, at: str) -> dict[str, Any]:
    try:
        return adapter.json_schema(mode=mode, schema_generator=_PlainJsonSchema)
    except PydanticUserError as error:
        first = str(error).splitlines()[0]
        raise ServiceError(f"{at}: its type has no JSON Schema: {first}") from error


def _violations_of(error: ValidationError) -> list[tuple[str, str]]:
    return [
        (".".join(str(part) for part in each["loc"]), each["msg"])
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _told(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


def _non_finite(value: Any, path: str) -> str | None:
    """The path of the first number that is not finite; None if there is none."""
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    members: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        members = list(value.items())
    elif isinstance(value, (list, tuple)):
        members = list(enumerate(value))
    for key, member in members:
        found = _non_finite(member, f"{path}.{key}" if path else str(key))
        if found is not None:
            return found
    return None
