"""Encodes bodies of calls: JSON, or multipart/form-data (RFC 7578) with files."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .data import plain
from .errors import BadArguments, Facts, Violation
from .files import Source

ARGUMENTS = "application/vnd.tessera.arguments+json"
"""Arguments by name, whatever else a body may be."""


class JsonBody:
    """Arguments without files."""

    repeatable = True

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        # One object alone might be taken for the value of the one argument of an endpoint whose
        # body is that, so it is said that it is by name.
        is_alone = len(arguments) == 1 and isinstance(next(iter(arguments.values())), Mapping)
        self.content_type = ARGUMENTS if is_alone else "application/json"
        fields = [f"{json.dumps(name)}:{to_json(name, value)}" for name, value in arguments.items()]
        self._data = ("{" + ",".join(fields) + "}").encode()
        self.length = len(self._data)

    def chunks(self) -> Iterator[bytes]:
        yield self._data


class FormBody:
    """Arguments with files. The others come first, as JSON, so that errors show early."""

    def __init__(self, values: Mapping[str, Any], files: Sequence[tuple[str, Source]]) -> None:
        self._boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={self._boundary}"
        self._parts: list[tuple[bytes, bytes | Source]] = []
        for name, value in values.items():
            self._parts.append((self._head(name), to_json(name, value).encode()))
        for name, source in files:
            self._parts.append((self._head(name, source), source))
        self._end = f"--{self._boundary}--\r\n".encode()
        self.repeatable = all(source.repeatable for _, source in files)

    @property
    def length(self) -> int | None:
        total = len(self._end)
        for head, content in self._parts:
            size = len(content) if isinstance(content, bytes) else content.length
            if size is None:
                return None
            total += len(head) + size + 2
        return total

    def chunks(self) -> Iterator[bytes]:
        for head, content in self._parts:
            yield head
            if isinstance(content, bytes):
                yield content
            else:
                yield from content.chunks()
            yield b"\r\n"
        yield self._end

    def _head(self, name: str, source: Source | None = None) -> bytes:
        head = f'--{self._boundary}\r\ncontent-disposition: form-data; name="{_escape(name)}"'
        if source is not None:
            head += f'; filename="{_escape(source.name)}"'
            head += f"\r\ncontent-type: {_one_line(source.content_type)}"
        return f"{head}\r\n\r\n".encode()


def _escape(text: str) -> str:
    """As browsers do: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data"""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def to_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, default=plain)
    except (TypeError, ValueError, RecursionError) as err:
        advice = "give numbers, texts, lists, dicts, booleans, None, arrays or tables"
        violation = Violation(name, f"is no JSON ({err}): {advice}")
        raise BadArguments(
            f"{name} {violation.description}", Facts(violations=[violation])
        ) from err
