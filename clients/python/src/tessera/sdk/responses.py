"""A response of Starlette that a function returns, as FastAPI's functions do.

It is known by its class alone: nobody imports Starlette who does not use it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from .executable import FileResult, IncomingCall, ResponseHead

DEFAULT_TYPE = "application/octet-stream"

_OF_CONTENT = frozenset({"content-type", "content-length"})
"""Headers that are told with the content."""


def is_response(value: object) -> bool:
    """True for a ``starlette.responses.Response``, or of a class that derives from it."""
    return _is_response_type(type(value))


def without_responses(hint: Any) -> Any:
    """The type hint of a result without responses, of which no schema says anything."""
    if isinstance(hint, type) and _is_response_type(hint):
        return Any
    if get_origin(hint) not in (Union, UnionType):
        return hint
    kept = [each for each in get_args(hint) if without_responses(each) is each]
    return Union[tuple(kept)] if kept else Any  # noqa: UP007


def _is_response_type(kind: type) -> bool:
    return any(
        each.__name__ == "Response" and each.__module__ == "starlette.responses"
        for each in kind.__mro__
    )


def is_streamed(value: object) -> bool:
    """True for a response whose content is still to be made; ``collected`` awaits it."""
    return is_response(value) and hasattr(value, "body_iterator")


async def collected(response: Any, call: IncomingCall) -> Path:
    """The content of a ``StreamingResponse``, in a file of the call's own folder."""
    path = call.folder / "response"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pieces: AsyncIterable[str | bytes] = response.body_iterator
    with open(path, "wb") as written:
        async for piece in pieces:
            written.write(piece.encode(response.charset) if isinstance(piece, str) else piece)
    call.temporary.append(path)
    return path


def content_of(response: Any, streamed: Path | None = None) -> FileResult:
    """What a response contains: bytes, or a file on disk."""
    content_type = response.headers.get("content-type", DEFAULT_TYPE)
    if streamed is not None:
        return FileResult(streamed, content_type)
    path = getattr(response, "path", None)
    if isinstance(path, (str, os.PathLike)):
        return FileResult(Path(path), content_type)
    return FileResult(bytes(response.body), content_type)


def tell(response: Any, call: IncomingCall) -> None:
    """Adds status and headers of a response to what was said of the answer; that goes first."""
    head = call.response = call.response or ResponseHead()
    if head.status is None and response.status_code != 200:
        head.status = response.status_code
    said = {name for name, _ in head.headers if name != "set-cookie"}
    for raw_name, raw_value in response.raw_headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name not in said and name not in _OF_CONTENT:
            head.headers.append((name, value))
