"""How a request is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"

OLD = "BentoML 1.3"
"""The row of what 1.4 mended."""

Upload = tuple[str | None, bytes, str]
"""Name, bytes, media type."""


@dataclass(frozen=True)
class Request:
    """A request, and the difference between the answers that is known of it."""

    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    data: Mapping[str, Any] | None = None
    files: tuple[tuple[str, Upload], ...] = ()
    is_task: bool = False
    """It is submitted, and when it has ended, it is asked for."""
    verb: str = "get"
    """What a task is asked for."""
    is_chunked: bool = False
    """Its body is sent without its length."""
    row: str = ""
    """The row of the table in ``docs/coming-from-bentoml.md`` that has the difference."""
    old_row: str | None = None
    """The same of BentoML 1.3, where that is another, or none."""
    since: str = ""
    """The first version of BentoML that has the endpoint."""
    title: str = ""

    def __str__(self) -> str:
        said = self.title or (self.content or b"")[:60].decode("utf-8", "backslashreplace")
        sent = [*(self.data or {}).items(), *((name, each[2]) for name, each in self.files)]
        fields = "&".join(f"{name}={value}" for name, value in sent)
        verb = self.verb if self.is_task else "" if self.method == "POST" else self.method
        return " ".join(each for each in (verb, self.path, said, fields) if each)


def sent(
    name: str, *bodies: str, row: str = "", old_row: str | None = None, **other: Any
) -> list[Request]:
    """JSON bodies, as they are written."""
    headers = {"content-type": JSON}
    return [
        Request(f"/{name}", each.encode(), headers, row=row, old_row=old_row, **other)
        for each in bodies
    ]


def values(name: str, *written: str, row: str = "", old_row: str | None = None) -> list[Request]:
    """The argument ``value``, as it is written in JSON."""
    bodies = [f'{{"value": {each}}}' for each in written]
    return sent(name, *bodies, row=row, old_row=old_row)


def form(
    name: str, data: Mapping[str, Any] | None = None, *files: tuple[str, Upload], **other: Any
) -> Request:
    """A form: urlencoded, or multipart where it has files."""
    return Request(f"/{name}", data=data or {}, files=files, **other)


def written(**arguments: Any) -> dict[str, str]:
    """Arguments for a form, each in JSON."""
    return {name: json.dumps(value) for name, value in arguments.items()}


def counted(requests: list[Request]) -> Iterator[tuple[str, Request]]:
    """Each request with a title of its own."""
    seen: dict[str, int] = {}
    for each in requests:
        title = str(each)
        seen[title] = seen.get(title, 0) + 1
        yield (title if seen[title] == 1 else f"{title} ({seen[title]})"), each
