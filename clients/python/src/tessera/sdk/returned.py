"""The result of a function, from its type hint: its schema, and how it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from .adapters import adapter_of, is_text, schema_of, told, violations_of
from .executable import CallError, FileResult, IncomingCall, JsonResult, ServiceError
from .files import File, contains_file, file_of, output_file
from .responses import content_of, is_response, is_streamed, tell, without_responses
from .special import check_written, described, is_file


class Returned:
    """What a function returns, or yields."""

    def __init__(self, hint: Any, *, endpoint: str, place: str) -> None:
        self._endpoint = endpoint
        at = f"{place}, its result"
        plain = without_responses(hint)
        check_written(plain, at)
        result = described(plain)
        self._adapter = None if result is Any else adapter_of(result, at)
        # A file has one schema, in and out.
        mode = "validation" if is_file(result) else "serialization"
        self.output: dict[str, Any] = (
            {} if self._adapter is None else schema_of(self._adapter, mode, at)
        )
        self.output_file = output_file(self.output)
        if self.output_file is None and contains_file(self.output):
            raise ServiceError(f"{at} can be one file, not a value with files inside")
        is_string = self.output.get("type") == "string" and self.output_file is None
        self.is_text = is_string and (self._adapter is None or is_text(self._adapter.core_schema))
        self.quoted = is_string and not self.is_text
        """True for a date, a UUID or the like, which JSON writes as a string."""

    def end(
        self, value: Any, call: IncomingCall, streamed: Path | None = None
    ) -> JsonResult | FileResult:
        """The same for a value that may be a response; ``streamed`` is what it streams."""
        if not is_response(value):
            return self.write(value)
        if streamed is None and is_streamed(value):
            raise output_invalid(f"{self._endpoint} streams a result of a batch: return it whole")
        tell(value, call)
        return content_of(value, streamed)

    def write(self, value: Any) -> JsonResult | FileResult:
        """The result as it is sent. Raises ``CallError`` for what the type hint does not allow."""
        if self.output_file is not None:
            return self._write_file(value, self.output_file)
        return JsonResult(self._json_of(value), value if isinstance(value, str) else None)

    def write_piece(self, value: Any) -> str | bytes:
        """A piece of a result as it is sent: text and bytes as they are, others as JSON."""
        if self.output_file is not None:
            return self._file_of(value).read()
        if self.is_text:
            if not isinstance(value, str):
                kind = type(value).__name__
                raise output_invalid(f"{self._endpoint} yielded {kind}, and its pieces are text")
            return value
        return self._json_of(value)

    def _json_of(self, value: Any) -> str:
        try:
            if self._adapter is None:
                json = to_json(value, inf_nan_mode="constants")
            else:
                value = self._adapter.validate_python(value)
                json = self._adapter.dump_json(value, by_alias=True)
        except ValidationError as error:
            said = told(violations_of(error))
            raise output_invalid(
                f"{self._endpoint} returned what its type hint does not allow: {said}"
            ) from error
        except (PydanticSerializationError, RecursionError) as error:
            raise self._unserialisable(str(error)) from error
        if b"null" in json or b"NaN" in json or b"Infinity" in json:
            self._refuse_lost_numbers(value)
        return json.decode()

    def _write_file(self, value: Any, spec: Mapping[str, Any]) -> FileResult:
        return self._file_of(value).result(spec.get("contentType"))

    def _file_of(self, value: Any) -> File:
        spec = self.output_file or {}
        try:
            file = file_of(value, spec.get("contentType"))
        except (ValueError, OSError, KeyError) as error:
            said = f"the result of {self._endpoint} cannot be written as a file: {error}"
            raise output_invalid(said) from error
        if file is None:
            raise self._not_a_file(value)
        return file

    def _not_a_file(self, value: Any) -> CallError:
        return output_invalid(
            f"{self._endpoint} returned {type(value).__name__}, and its type hint is a file"
        )

    def _refuse_lost_numbers(self, value: Any) -> None:
        """Raises for a number that JSON does not have, which would be written as null."""
        plain = value if self._adapter is None else self._adapter.dump_python(value, by_alias=True)
        path = _non_finite(plain, "")
        if path is not None:
            where = f"{path} in it" if path else "it"
            raise self._unserialisable(f"{where} is not a finite number, which JSON cannot carry")

    def _unserialisable(self, why: str) -> CallError:
        return output_invalid(f"the result of {self._endpoint} cannot be sent: {why}")


def output_invalid(message: str) -> CallError:
    """The failure of a call whose result cannot be sent."""
    return CallError(message, reason="OUTPUT_INVALID")


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
