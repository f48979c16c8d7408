"""Parses `/schema.json`, and encodes arguments by it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .content import FormBody, JsonBody
from .data import as_upload
from .errors import BadArguments, Facts, Violation
from .files import Source, Upload
from .wire import Body


@dataclass(frozen=True)
class Endpoint:
    name: str
    route: str
    """The path, as URLs have it."""
    is_task: bool
    description: str
    input: Mapping[str, Any]
    output: Mapping[str, Any]

    @property
    def streams(self) -> bool:
        """Whether the result comes in pieces, of which `output` describes one."""
        return bool(self.output.get("is_stream"))

    @property
    def returns_file(self) -> bool:
        return self.output.get("type") == "file"

    def takes_file(self, argument: str) -> bool:
        return _is_file(self._property(argument)) or self._takes_files(argument)

    def body(self, args: Sequence[Any], named: Mapping[str, Any]) -> Body:
        """Encodes arguments; raises TypeError as a Python function would."""
        values = self._named(args, named)
        files: list[tuple[str, Source]] = []
        for name in [name for name in values if self.takes_file(name)]:
            given = values[name]
            if given is None:
                continue
            several = self._takes_files(name) and isinstance(given, (list, tuple))
            for each in given if several else [given]:
                file = as_upload(name, each, self._content_type(name))
                files.append((name, _source(name, file)))
        sent = {name: value for name, value in values.items() if not self.takes_file(name)}
        return FormBody(sent, files) if files else JsonBody(sent)

    def _named(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        names = list(self.input.get("properties", {}))
        if len(args) > len(names):
            raise TypeError(
                f"{self.name}() takes {len(names)} arguments ({', '.join(names)}), "
                f"but {len(args)} were given"
            )
        values = dict(zip(names, args, strict=False))
        for name in named:
            if name in values:
                raise TypeError(f"{self.name}() got more than one value for {name!r}")
        return {**values, **named}

    def _property(self, name: str) -> Mapping[str, Any]:
        found = self.input.get("properties", {}).get(name)
        return found if isinstance(found, dict) else {}

    def _content_type(self, name: str) -> str:
        """Of a file argument; empty for any."""
        described = self._property(name)
        if self._takes_files(name):
            described = described["items"]
        kind = str(described.get("content_type") or "")
        return "" if "*" in kind else kind

    def _takes_files(self, name: str) -> bool:
        described = self._property(name)
        return described.get("type") == "array" and _is_file(described.get("items"))


def server(path: str) -> Endpoint:
    """A mounted server whose requests are tasks: their arguments are a request."""
    names = ("method", "path", "headers")
    properties = {**{name: {} for name in names}, "body": {"type": "file"}}
    return Endpoint(
        name=path,
        route=quote(path),
        is_task=True,
        description="",
        input={"properties": properties},
        output={"type": "file"},
    )


@dataclass(frozen=True)
class Schema:
    name: str
    endpoints: Mapping[str, Endpoint]

    @staticmethod
    def parse(document: Any) -> Schema | None:
        """Parses the document; None when it is not one."""
        routes = document.get("routes") if isinstance(document, dict) else None
        if not isinstance(routes, list):
            return None
        endpoints = {}
        for route in routes:
            if not isinstance(route, dict) or "name" not in route:
                return None
            endpoints[route["name"]] = Endpoint(
                name=route["name"],
                route=str(route.get("route") or f"/{route['name']}"),
                is_task=bool(route.get("is_task")),
                description=route.get("description", ""),
                input=route.get("input") or {},
                output=route.get("output") or {},
            )
        return Schema(str(document.get("name", "")), endpoints)


def _is_file(described: Any) -> bool:
    return isinstance(described, dict) and described.get("type") == "file"


def _source(name: str, given: Any) -> Source:
    content = given.content if isinstance(given, Upload) else given
    readable = hasattr(content, "read")
    if readable or isinstance(content, (str, os.PathLike, bytes, bytearray, memoryview)):
        return Source(given)
    what = f"is a file: give a path, bytes or a file object, not {type(given).__name__}"
    raise BadArguments(f"{name} {what}", Facts(violations=[Violation(name, what)]))
