"""Messages of the platform's API as JSON, by protobuf's rules for it
(https://protobuf.dev/programming-guides/json/)."""

from __future__ import annotations

import base64
import dataclasses
import enum
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class FieldMask(list[str]):
    """The fields that a change is about, in dots: `FieldMask(["settings.max_workers"])`."""


@dataclasses.dataclass(kw_only=True)
class HttpBody:
    """A text, JSON or a file, with its media type."""

    content_type: str = ""
    data: bytes = b""


@dataclasses.dataclass(kw_only=True)
class FieldViolation:
    """One argument and what is wrong with it."""

    field: str = ""
    description: str = ""
    reason: str = ""


def encode(value: Any) -> Any:
    """The JSON of a value. Raises `ValueError` for a time without its zone."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time must say its zone, such as datetime.now(timezone.utc)")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1) / 1_000_000:.6f}s"
    if isinstance(value, FieldMask):
        return ",".join(re.sub(r"_([a-z0-9])", lambda it: it[1].upper(), path) for path in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return encode({each.name: getattr(value, each.name) for each in fields})
    if isinstance(value, Mapping):
        return {name: encode(each) for name, each in value.items() if each is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [encode(each) for each in value]
    return value


def decode(kind: type[T], said: Any) -> T:
    """A message of this class; fields that the class does not have are left out."""
    return cast(T, _reader(cast(Any, kind))(said))


_Read = Callable[[Any], Any]


@cache
def _reader(hint: Any) -> _Read:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (one,) = [each for each in args if each is not type(None)]
        return _reader(one)
    if origin is list:
        item = _reader(args[0])
        return lambda said: [item(each) for each in said]
    if origin is dict:
        value = _reader(args[1])
        return lambda said: {name: value(each) for name, each in said.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum_reader(hint)
    if dataclasses.is_dataclass(hint):
        return _message_reader(hint)
    return _PLAIN.get(hint, lambda said: said)


def _message_reader(kind: Any) -> _Read:
    module = vars(sys.modules[kind.__module__])
    # Without the members of the class, whose names may be those of types.
    hints = get_type_hints(kind, module, {})
    readers = {
        _camel(each.name): (each.name, hints[each.name]) for each in dataclasses.fields(kind)
    }

    def read(said: Mapping[str, Any]) -> Any:
        values = {}
        for name, value in said.items():
            if name in readers and value is not None:
                field, hint = readers[name]
                values[field] = _reader(hint)(value)
        return kind(**values)

    return read


def _enum_reader(kind: type[enum.Enum]) -> _Read:
    known = {each.value: each for each in kind}
    unknown = next(iter(kind))
    return lambda said: known.get(said, unknown)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda it: it[1].upper(), name)


def _time(said: str) -> datetime:
    """RFC 3339, to the microsecond; Python before 3.11 takes 3 or 6 digits only, and no `Z`."""
    whole, _, fraction = said.removesuffix("Z").partition(".")
    time = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc)
    return time + timedelta(microseconds=int(fraction[:6].ljust(6, "0")) if fraction else 0)


_PLAIN: Mapping[Any, _Read] = {
    # Whole numbers of 64 bits are texts, and numbers that JSON lacks are names.
    int: int,
    float: float,
    bytes: base64.b64decode,
    datetime: _time,
    timedelta: lambda said: timedelta(seconds=float(said.removesuffix("s"))),
    FieldMask: lambda said: FieldMask(said.split(",")),
}
